"""What entries refer to and files do not hold: surfaces, conduits, templates of clearances."""

from typing import Any

from baton.beamline.file import FileEntry
from baton.beamline.kinds.kind import Names, ReferredKind, path_of


class NamedThing(FileEntry):
    """A thing that is only referred to."""

    name: str
    facility: str | None = None


class SurfaceSection(ReferredKind[NamedThing]):
    section, label, lists, id_name = "surfaces", "surface", "list_surfaces", "surface_id"

    def identity(self, row: Any, names: Names) -> NamedThing:
        return NamedThing(name=row.name)


class ConduitSection(ReferredKind[NamedThing]):
    section, label, lists, id_name = "conduits", "conduit", "list_conduits", "conduit_id"

    def identity(self, row: Any, names: Names) -> NamedThing:
        return NamedThing(name=row.name)


class TemplateSection(ReferredKind[NamedThing]):
    section, label, lists, id_name = "templates", "clearance template", "list_clearance_templates", "template_id"
    retired = frozenset({"Withdrawn"})

    def texts(self, entry: NamedThing) -> tuple[str, ...]:
        return path_of(entry.name), path_of(entry.facility, entry.name)

    def identity(self, row: Any, names: Names) -> NamedThing:
        return NamedThing(name=row.code, facility=row.facility_code)


LOOKUPS: dict[str, ReferredKind[Any]] = {
    kind.section: kind for kind in (SurfaceSection(), ConduitSection(), TemplateSection())
}
