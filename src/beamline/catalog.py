"""The starter catalog of an imaging beamline, `catalog.yaml`: an operator may load it; what is there already stays."""

from dataclasses import replace
from functools import cache
from importlib.resources import files

from baton.beamline.application import PlanApplication
from baton.beamline.changes import ChangePlan, ThingChange
from baton.beamline.commands import DONE, REFUSED, compare, print_line, progress
from baton.beamline.reading import LoadedFile, Source, read_text
from baton.client import Baton


@cache
def starter_catalog() -> LoadedFile:
    """Return the catalog as it is shipped."""
    return read_text(Source("catalog.yaml", files(__package__).joinpath("catalog.yaml").read_text()))


def load_catalog(client: Baton) -> int:
    """Define what is missing, and say how much that was; what exists under the same name is left alone."""
    compared = compare(client, [starter_catalog()])
    plan = missing_only(compared.plan)
    with progress("loading", plan.commands) as advance:
        results = PlanApplication(client, plan, compared.record, advance).run()
    for (section, key), why in (*results.refused.items(), *results.skipped.items()):
        print_line("!", f"{section}: {key}: {why}")
    content = starter_catalog().content
    counts = f"{len(content.families)} families, {len(content.models)} models and {len(content.assemblies)} assemblies"
    lost = {*results.refused, *results.skipped}
    defined = sum(one.creates and (one.section, one.key) not in lost for one in plan.changes)
    everything = len(content.families) + len(content.models) + len(content.assemblies)
    print(f"{counts}: {defined} defined, {everything - defined - len(lost)} found and left alone.")
    return REFUSED if lost else DONE


def missing_only(plan: ChangePlan) -> ChangePlan:
    """Return a plan without changes of what is on record, except roles of a family that a load was cut off at."""
    return replace(plan, changes=tuple(kept for one in plan.changes if (kept := load_part(one)).updates))


def load_part(change: ThingChange) -> ThingChange:
    """Return a change as far as a load makes it."""
    if change.creates:
        return change
    differs = change.obstacles or any(update.operation == "version_family" for update in change.updates)
    roles = () if differs else tuple(update for update in change.updates if update.operation == "add_family_role")
    return replace(change, updates=roles)
