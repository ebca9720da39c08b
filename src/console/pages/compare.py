"""Compare: what was different in a run, beside the last of its plan that worked, the most surprising first."""

from typing import Any

from baton.console.page import Context, page
from baton.console.page_queries import PageQueries
from baton.domain.run.run_views import GetRun
from baton.domain.views.run_comparison import Baseline, CompareRuns

compare = page(
    "/runs/{run_id}/compare", "Compare", "What was different in a run, the most surprising first.", template="compare.html"
)
BASELINES = {Baseline.LAST_COMPLETED: "the last that worked", Baseline.COMPLETED_20: "the last twenty that worked"}


@compare.title_from
async def load_name(queries: PageQueries) -> str:
    return (await queries.ask(GetRun, queries.id("run_id"))).name


@compare.region("rows", asks=[CompareRuns])
async def load_rows(queries: PageQueries) -> Context:
    wanted, other = queries.query.get("baseline"), queries.query.get("with")
    baseline = Baseline.COMPLETED_20 if wanted == Baseline.COMPLETED_20 else Baseline.LAST_COMPLETED
    asked: dict[str, Any] = {"with_run_id": other} if other else {"baseline": baseline}
    id = queries.id("run_id")
    found = await queries.show(CompareRuns, id, **asked)
    return {"found": found, "baselines": BASELINES, "baseline": None if other else baseline, "href": f"/console/runs/{id}"}
