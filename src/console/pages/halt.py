"""Halt: everything that is live, to be stopped or aborted; the halt bar leads here from pages about no single run."""

from baton.console.display import shown_status
from baton.console.page import Context, page
from baton.console.page_queries import PageQueries
from baton.console.verbs import form_href
from baton.domain.contexts import REGISTRY
from baton.domain.procedure.procedure import ListProcedures
from baton.domain.run.run import ListRuns

VERBS = {"stop": "Stop", "abort": "Abort"}

halt = page("/halt", "Halt", "Everything that is live, to be stopped or aborted.", template="halt.html")


@halt.region("live", asks=[ListRuns, ListProcedures], every=2.0)
async def load_live(queries: PageQueries) -> Context:
    verb = queries.query.get("verb", "abort")
    verb = verb if verb in VERBS else "abort"
    work = []
    for status in ("Running", "Held"):
        for one in (await queries.show(ListRuns, status=status, order="desc"))["items"]:
            href = form_href(REGISTRY.operations[f"{verb}_run"], one["run_id"], back="/console/halt?verb=" + verb)
            work.append({"kind": "Run", "id": one["run_id"], "name": one["name"], "status": shown_status(one), "href": href})
    for one in (await queries.show(ListProcedures, status="Running", order="desc"))["items"]:
        if verb == "abort" and one.get("parent_run_id") is None:
            href = form_href(REGISTRY.operations["abort_procedure"], one["procedure_id"], back="/console/halt?verb=abort")
            work.append(
                {
                    "kind": "Procedure",
                    "id": one["procedure_id"],
                    "name": one["name"],
                    "status": shown_status(one),
                    "href": href,
                }
            )
    return {"verb": verb, "label": VERBS[verb], "work": work}
