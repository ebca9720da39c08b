"""The files that are shipped for a beginning: `catalog.yaml`, the starter catalog of an imaging beamline, which leaves what
is there already; and `roles.yaml`, groups and policies for a site to take over."""

from dataclasses import replace
from functools import cache
from importlib.resources import files

from baton.beamline.changes import ThingChange
from baton.beamline.commands import DONE, REFUSED, Comparison, compare, issue, print_line
from baton.beamline.reading import LoadedFile, Source, read_text
from baton.client import Baton


@cache
def starter_catalog() -> LoadedFile:
    """Return the catalog as it is shipped."""
    return shipped_file("catalog.yaml")


def starter_roles() -> LoadedFile:
    """Return the groups and policies as they are shipped."""
    return shipped_file("roles.yaml")


def shipped_file(name: str) -> LoadedFile:
    """Return a file of this package."""
    return read_text(Source(name, files(__package__).joinpath(name).read_text()))


def load_catalog(client: Baton) -> int:
    """Define what is missing, and say how much that was; what exists under the same name is left alone."""
    compared = compare_missing(client)
    plan = compared.plan
    results = issue(client, compared, lambda: compare_missing(client))
    for (section, key), why in (*results.refused.items(), *results.skipped.items()):
        print_line("!", f"{section}: {key}: {why}")
    content = starter_catalog().content
    counts = f"{len(content.families)} families, {len(content.models)} models and {len(content.assemblies)} assemblies"
    lost = {*results.refused, *results.skipped}
    defined = sum(one.creates and (one.section, one.key) not in lost for one in plan.changes)
    everything = len(content.families) + len(content.models) + len(content.assemblies)
    print(f"{counts}: {defined} defined, {everything - defined - len(lost)} found and left alone.")
    return REFUSED if lost else DONE


def compare_missing(client: Baton) -> Comparison:
    """Compare without changes of what is on record, except roles of a family that a load was cut off at."""
    compared = compare(client, [starter_catalog()])
    kept = tuple(part for one in compared.plan.changes if (part := load_part(one)).updates)
    return replace(compared, plan=replace(compared.plan, changes=kept))


def load_part(change: ThingChange) -> ThingChange:
    """Return a change as far as a load makes it."""
    if change.creates:
        return change
    differs = change.obstacles or any(update.operation == "version_family" for update in change.updates)
    roles = () if differs else tuple(update for update in change.updates if update.operation == "add_family_role")
    return replace(change, updates=roles)
