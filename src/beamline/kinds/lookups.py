"""What entries refer to and files do not hold: surfaces, conduits, templates of clearances."""

from baton.beamline.file import FileEntry
from baton.beamline.kinds.kind import ReferredSection, path_of


class NamedThing(FileEntry):
    """A thing that is only referred to."""

    name: str
    facility: str | None = None


class LookupSection(ReferredSection[NamedThing]):
    """A section that files do not have."""

    @property
    def form(self) -> type[NamedThing]:
        return NamedThing


class SurfaceSection(LookupSection):
    section, label, lists, id_name = "surfaces", "surface", "list_surfaces", "surface_id"


class ConduitSection(LookupSection):
    section, label, lists, id_name = "conduits", "conduit", "list_conduits", "conduit_id"


class TemplateSection(LookupSection):
    section, label, lists, id_name = "templates", "clearance template", "list_clearance_templates", "template_id"
    retired = frozenset({"Withdrawn"})
    told_by = ("name", "facility")
    domain_names = {"name": "code"}

    def texts(self, entry: NamedThing) -> tuple[str, ...]:
        return path_of(entry.name), path_of(entry.facility, entry.name)


LOOKUPS: dict[str, LookupSection] = {kind.section: kind for kind in (SurfaceSection(), ConduitSection(), TemplateSection())}
