"""The form of a beamline file: what stands at a beamline and what may be done with it. Things refer to each other by name,
assets by path (`hutch-b/tomography/rotary`), never by id. A field that is left out is left alone on the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, JsonValue

from baton.domain.access.actor import ActorKind
from baton.domain.access.group import GroupClaim
from baton.domain.agent.agent import Cost
from baton.domain.agent.language_model import ModelRef
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.assembly import Cardinality, RequiredWire
from baton.domain.equipment.asset import AssetTier
from baton.domain.equipment.model import Manufacturer
from baton.domain.equipment.partition import PartitionRule
from baton.domain.equipment.values import AlternateIdentifier, Drawing, Overview, Owner, Port, SignalLimits
from baton.domain.facility.facility import FacilityIdentifier, FacilityKind
from baton.domain.kernel import Value
from baton.domain.queue.queue import OnFailure
from baton.domain.recipe.capability import ExecutorShape
from baton.domain.recipe.conduct_options import OnUnknownOutcome, WatchedGates
from baton.domain.recipe.method import PortRequirement
from baton.domain.recipe.offered_plans import PLAN_PREFIX
from baton.domain.recipe.patterns import Pattern
from baton.domain.recipe.plots import RecipePlot
from baton.domain.recipe.steps import RecipeStep
from baton.domain.safety.hazards import RiskBand
from baton.domain.schedule.calendar import Calendar
from baton.domain.schedule.schedule import Overlap
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.times import Instant
from baton.domain.trust.policy import DEFAULT_EXPIRY_SECONDS


@dataclass(frozen=True)
class RefersTo:
    """Marks a field whose texts name things of these sections."""

    sections: tuple[str, ...]

    def __init__(self, *sections: str) -> None:
        object.__setattr__(self, "sections", sections)


def note(sentence: str, **limits: Any) -> Any:
    """Return the description of a field, and its limits."""
    return Field(description=sentence, **limits)


Name = Annotated[str, Field(min_length=1, max_length=200)]
Reference = Annotated[str, Field(min_length=1, max_length=2000)]
References = tuple[Reference, ...]
Affordances = tuple[Affordance, ...]
JsonSchema = dict[str, Any]
Version = Annotated[
    str | None,
    note(
        "Label of this content; where a change needs a new one and none is given, it follows from the content.",
        max_length=50,
    ),
]
FacilityRef = Annotated[
    Reference | None, note("Code of the facility; that of the file where none is given."), RefersTo("facilities")
]
FamilyRefs = Annotated[References | None, note("Names of families."), RefersTo("families")]
RoleRefs = Annotated[References | None, note("Names of the roles that it presents."), RefersTo("roles")]


class FileEntry(Value):
    """One thing in a beamline file."""


class FacilityEntry(FileEntry):
    """A site or an area of one."""

    code: Annotated[Name, note("The code that everything else names the facility by; it is taken for ever.")]
    display_name: Annotated[Name | None, note("Name of the facility for people; its code where none is given.")] = None
    kind: FacilityKind | None = None
    parent: Annotated[Reference | None, note("Code of the site that an area belongs to."), RefersTo("facilities")] = None
    alternate_identifiers: tuple[FacilityIdentifier, ...] | None = None


class EnclosureEntry(FileEntry):
    """A hutch or another volume that an interlock guards."""

    name: Name
    facility: FacilityRef = None


class RoleEntry(FileEntry):
    """A functional contract, such as Detector."""

    name: Name
    description: Annotated[str | None, note("What a presenter of the role is for.")] = None
    required_affordances: Affordances | None = None
    optional_affordances: Affordances | None = None
    produces: tuple[str, ...] | None = None
    consumes: tuple[str, ...] | None = None


class FamilyEntry(FileEntry):
    """A device class."""

    name: Name
    affordances: Affordances | None = None
    settings_schema: JsonSchema | None = None
    presents: RoleRefs = None
    version: Version = None


class VendorModelEntry(FileEntry):
    """A vendor's catalog entry; manufacturer and part number tell it from others."""

    name: Name
    manufacturer: Annotated[Manufacturer, note("Who makes it.")]
    part_number: Name
    families: FamilyRefs = None
    version: Version = None


class SlotEntry(FileEntry):
    """A slot of an assembly."""

    name: Annotated[Name, note("Name of the slot.")]
    families: Annotated[References, note("Families whose assets may fill the slot."), RefersTo("families")]
    cardinality: Cardinality


class AssemblyEntry(FileEntry):
    """A blueprint of a cluster of devices."""

    name: Name
    presents: RoleRefs = None
    slots: Annotated[tuple[SlotEntry, ...] | None, note("Places for assets.")] = None
    wires: Annotated[tuple[RequiredWire, ...] | None, note("Connections between ports of slots.")] = None
    sub_assemblies: Annotated[
        dict[str, Reference] | None,
        note("Included assemblies by the slot they take; each is pinned to its content."),
        RefersTo("assemblies"),
    ] = None
    parameter_overrides_schema: JsonSchema | None = None
    drawing: Drawing | None = None
    version: Version = None


class AssetEntry(FileEntry):
    """A piece of equipment, with what hangs below it."""

    name: Name
    tier: Annotated[AssetTier | None, note("Unit for a root and Device below one, where none is given.")] = None
    facility: Annotated[
        Reference | None,
        note("Code of the facility of a root; that of the file where none is given."),
        RefersTo("facilities"),
    ] = None
    enclosure: Annotated[
        Reference | None, note("Name of the enclosure that it stands in; null for none."), RefersTo("enclosures")
    ] = None
    families: Annotated[
        References | None, note("All families of the asset; those of its model come by themselves."), RefersTo("families")
    ] = None
    model: Annotated[Reference | None, note("Name of its model, or manufacturer/part number."), RefersTo("models")] = None
    controller: Annotated[Reference | None, note("Path of the asset that drives it."), RefersTo("assets")] = None
    drawing: Drawing | None = None
    identifiers: Annotated[
        tuple[AlternateIdentifier, ...] | None, note("Other names it goes by; an EPICS_PV owns the signals under it.")
    ] = None
    owners: tuple[Owner, ...] | None = None
    ports: tuple[Port, ...] | None = None
    settings: Annotated[dict[str, JsonValue] | None, note("All settings, as the schemas of its families allow.")] = None
    signal_limits: Annotated[
        dict[str, SignalLimits] | None, note("Lowest and highest value by the signal's address, in the signal's unit.")
    ] = None
    overview: Annotated[
        Overview | None,
        note("What people watch at a beamline, of its root: up to six signals, and a camera by its address."),
    ] = None
    partition_rule: PartitionRule | None = None
    lifecycle: Annotated[
        Literal["Commissioned", "Active", "Maintenance"] | None,
        note("Where none is given, a Commissioned asset is put into use and any other left alone."),
    ] = None
    formerly: Annotated[Reference | None, note("Path that the asset has on record: it is renamed or moved.")] = None
    children: Annotated["tuple[AssetEntry, ...] | None", note("The assets right below.")] = None


class SupplyEntry(FileEntry):
    """A continuous resource that runs draw on."""

    name: Name
    kind: Annotated[Name, note("What it delivers, such as photon_beam or Storage.")]
    facility: FacilityRef = None
    asset: Annotated[
        Reference | None, note("Path of the asset that it belongs to; none for a whole facility."), RefersTo("assets")
    ] = None
    status: Annotated[
        Literal["Available", "Degraded", "Unavailable"] | None,
        note("What somebody saw; it is recorded once, while the status is Unknown, and never where a monitor watches."),
    ] = None
    reason: Annotated[str | None, note("Why that status; it is recorded with it.", max_length=500)] = None


class CapabilityEntry(FileEntry):
    """The contract of a kind of operation."""

    code: Annotated[Name, note("It begins with baton.capability. and is taken for ever.")]
    name: Name
    description: str | None = None
    required_affordances: Affordances | None = None
    executor_shapes: tuple[ExecutorShape, ...] | None = None
    parameters_schema: JsonSchema | None = None
    version: Version = None


class RoleRequirementEntry(FileEntry):
    """A part to be played in a method, by an asset of a family or by a presenter of a role."""

    role_name: Name
    family: Annotated[Reference | None, note("Name of the family."), RefersTo("families")] = None
    role: Annotated[Reference | None, note("Name of the equipment role."), RefersTo("roles")] = None
    required_ports: tuple[PortRequirement, ...] = ()
    optional: bool = False


class MethodEntry(FileEntry):
    """A portable technique that realises a capability."""

    name: Name
    capability: Annotated[Reference, note("Code or name of the capability that it realises."), RefersTo("capabilities")]
    needed_families: FamilyRefs = None
    needed_supplies: tuple[str, ...] | None = None
    parameters_schema: JsonSchema | None = None
    required_roles: tuple[RoleRequirementEntry, ...] | None = None
    version: Version = None


class PracticeEntry(FileEntry):
    """A method adopted at a site, for families, or both."""

    name: Name
    method: Annotated[Reference, note("Name of the method."), RefersTo("methods")]
    site: Annotated[Reference | None, note("Code of the facility that adopts it."), RefersTo("facilities")] = None
    families: FamilyRefs = None
    version: Version = None


class PlanWireEntry(FileEntry):
    """A connection between ports of two assets of a plan."""

    source: Annotated[Reference, note("Path of the asset that sends."), RefersTo("assets")]
    source_port: Annotated[Name, note("Name of its output.")]
    target: Annotated[Reference, note("Path of the asset that receives."), RefersTo("assets")]
    target_port: Annotated[Name, note("Name of its input.")]


class DataRegistrationEntry(FileEntry):
    """How files of a plan's runs become datasets."""

    supply: Annotated[Reference, note("Name of the storage that the files are on."), RefersTo("supplies")]
    capturing_asset: Annotated[Reference | None, note("Path of the asset that captures raw data."), RefersTo("assets")] = (
        None
    )
    raw_outputs: Annotated[tuple[str, ...], note("Names of outputs of programs that are raw data.")] = ()


class PlanEntry(FileEntry):
    """A practice bound to equipment, from which runs start."""

    name: Name
    practice: Annotated[Reference, note("Name of the practice."), RefersTo("practices")]
    assets: Annotated[References | None, note("Paths of the assets that it is bound to."), RefersTo("assets")] = None
    window_starts_at: Instant | None = None
    window_ends_at: Instant | None = None
    default_parameters: dict[str, JsonValue] | None = None
    wires: tuple[PlanWireEntry, ...] | None = None
    roles: Annotated[
        dict[str, Reference] | None, note("Path of the asset that plays each role of the method."), RefersTo("assets")
    ] = None
    data_registration: DataRegistrationEntry | None = None
    version: Version = None


PLAN_PATTERN = r"^[a-z][a-z0-9_-]*/[A-Za-z_][A-Za-z0-9_.]*$"


class PlanStepEntry(FileEntry):
    """A Bluesky plan that an executor carries out, written short for an action of that name."""

    plan: Annotated[str, note("Executor and plan, such as bl7/scan.", pattern=PLAN_PATTERN, max_length=95)]
    params: Annotated[dict[str, Any], note("The parameters of the plan, by name.")] = {}


def _read_step(step: object) -> object:
    """Return a step as recipes have it: a plan that is written short is an action."""
    if not (isinstance(step, Mapping) and "plan" in step and "kind" not in step):
        return step
    entry = PlanStepEntry.model_validate(step)
    return {"kind": "action", "name": f"{PLAN_PREFIX}{entry.plan}", "params": entry.params}


StepEntry = Annotated[RecipeStep, BeforeValidator(_read_step, json_schema_input_type=RecipeStep | PlanStepEntry)]


class RecipeEntry(FileEntry):
    """Steps that realise a capability here."""

    name: Name
    capability: Annotated[Reference, note("Code or name of the capability that it realises."), RefersTo("capabilities")]
    steps: tuple[StepEntry, ...] | None = None
    pattern: Annotated[Pattern | None, note("A pattern that the steps are made from, in place of steps.")] = None
    closing_steps: tuple[StepEntry, ...] | None = None
    watch: WatchedGates | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    plot: Annotated[RecipePlot | None, note("What is drawn of its points while it is conducted.")] = None
    version: Version = None


class ActorEntry(FileEntry):
    """A person or a service account; contact data and tokens are not kept in files."""

    name: Name
    kind: Literal[ActorKind.HUMAN, ActorKind.SERVICE_ACCOUNT] | None = None


class BudgetEntry(FileEntry):
    """What an agent may spend by itself; a cap that is left out is none."""

    monthly_cost_cap: Cost | None = None
    daily_token_cap: int | None = None


class AgentEntry(FileEntry):
    """A piece of software that acts by itself; another model or version is another agent."""

    name: Name
    version: Annotated[Name, note("Version of the agent.")]
    kind: Annotated[Name | None, note("What it is for, such as Alignment; an agent that is not on record needs it.")] = None
    model: Annotated[ModelRef | None, note("The model it asks; an agent that is not on record needs it.")] = None
    description: str | None = None
    canonical_uri: str | None = None
    prompt: Annotated[str | None, note("Name of the service's prompt that it is asked with.")] = None
    capabilities: Annotated[tuple[str, ...] | None, note("What it says it can do.")] = None
    tools: Annotated[tuple[str, ...] | None, note("All tools that are declared for it.")] = None
    budget: Annotated[BudgetEntry | None, note("What it may spend by itself; null for no limit.")] = None
    status: Annotated[
        Literal["Defined", "Versioned", "Suspended"] | None, note("Versioned puts it into service; left out, nothing does.")
    ] = None


class GroupEntry(FileEntry):
    """Actors and agents that policies permit together: those that are listed, and those whose token has the claim."""

    name: Name
    claim: Annotated[GroupClaim | None, note("Claim that makes the holder of a token a member; null for none.")] = None
    members: Annotated[
        References | None, note("Names of all actors and agents that are listed."), RefersTo("actors", "agents")
    ] = None


class ApprovalEntry(FileEntry):
    """Who may approve what a policy permits with approval, as far as they hold the command themselves."""

    principals: Annotated[References, note("Names of actors and agents."), RefersTo("actors", "agents")] = ()
    groups: Annotated[References, note("Names of groups."), RefersTo("groups")] = ()
    expires_after: Annotated[int, Seconds, note("How long they have, in seconds.")] = DEFAULT_EXPIRY_SECONDS


class PolicyEntry(FileEntry):
    """Who may do what, through which surface; with an approval, only once somebody whom that names approves."""

    name: Name
    surface: Annotated[Reference, note("Name of the surface that calls arrive on."), RefersTo("surfaces")] = "System HTTP"
    conduit: Annotated[
        Reference | None, note("Name of the conduit; the system's own where none is given."), RefersTo("conduits")
    ] = None
    principals: Annotated[References | None, note("Names of actors and agents."), RefersTo("actors", "agents")] = None
    groups: Annotated[References | None, note("Names of groups whose members are permitted."), RefersTo("groups")] = None
    commands: Annotated[tuple[str, ...] | None, note("Names of commands.")] = None
    command_sets: Annotated[tuple[str, ...] | None, note("Names of sets of commands, such as run.commands.")] = None
    approval: Annotated[ApprovalEntry | None, note("Who must approve each call; null where nobody must.")] = None


class ScheduledRecipe(FileEntry):
    """A recipe to conduct, and how."""

    recipe: Annotated[Reference, note("Name of the recipe."), RefersTo("recipes")]
    name: Annotated[Name, note("Name of each procedure; {fired_at} and {count} are filled in.")]
    procedure_kind: str = "scheduled"
    bindings: dict[str, JsonValue] = {}
    assets: Annotated[References, note("Paths of the assets that it is about."), RefersTo("assets")] = ()
    conduct: Annotated[dict[str, JsonValue] | None, note("How it is conducted; its steps once, where nothing is said.")] = (
        None
    )


class ScheduledRun(FileEntry):
    """A run to start and conduct."""

    plan: Annotated[Reference, note("Name of the plan."), RefersTo("plans")]
    name: Annotated[Name, note("Name of each run; {fired_at} and {count} are filled in.")]
    override_parameters: dict[str, JsonValue] = {}
    phases: Annotated[tuple[ScheduledRecipe, ...], note("The procedures of the run, in order.", min_length=1)]


class ScheduleEntry(FileEntry):
    """Work on a calendar, as the caller who applies the file."""

    name: Name
    calendar: Calendar
    time_zone: str | None = None
    overlap: Overlap | None = None
    catchup_window: Annotated[int | None, Seconds] = None
    jitter: Annotated[int | None, Seconds] = None
    target: Annotated[ScheduledRecipe | ScheduledRun, note("What it conducts: a recipe, or a run on a plan.")]
    status: Annotated[Literal["Active", "Held"] | None, note("Whether it fires; left out, a new one does.")] = None


class QueueEntry(FileEntry):
    """The queue of a beamline with its settings; its items are work, and no part of a file."""

    name: Name
    asset: Annotated[Reference, note("Path of the beamline, a root of the asset tree."), RefersTo("assets")]
    on_failure: Annotated[
        OnFailure | None, note("What an item that fails or is refused leads to; hold, where none is given.")
    ] = None
    status: Annotated[Literal["Active", "Held"] | None, note("Whether it starts items; left out, a new one does.")] = None


class OutsideReference(FileEntry):
    """Something outside the service that a clearance covers."""

    scheme: Name
    value: Name


class ClearanceEntry(FileEntry):
    """A safety form, brought into force by the ordinary verbs as the caller."""

    title: Annotated[Name, note("Title of the form; no two forms of one facility that may count share it.")]
    template: Annotated[Reference, note("Code of the template, such as ESAF."), RefersTo("templates")]
    facility: FacilityRef = None
    assets: Annotated[References, note("Paths of the assets that it covers."), RefersTo("assets")] = ()
    external: Annotated[tuple[OutsideReference, ...], note("What it covers outside the service.")] = ()
    risk_band: RiskBand | None = None
    external_id: Annotated[str | None, note("The facility's own number of the form.")] = None
    external_id_scheme: Annotated[str | None, note("Where that number is from.")] = None
    valid_from: Instant | None = None
    valid_until: Instant | None = None
    in_force: Annotated[
        bool | None, note("True has it reviewed, approved and activated by the caller, where the caller may.")
    ] = None
    reviewer_role: Annotated[str, note("Role in which the caller reviews it.", min_length=1, max_length=50)] = (
        "BeamlineScientist"
    )


class BeamlineFile(Value):
    """What stands at a beamline and what may be done with it; names refer to the file's own things and to the record's."""

    baton: Annotated[Literal[1], note("Number of this form of files.")] = 1
    facility: Annotated[
        Reference | None, note("Code of the facility of everything that names none; the service's only site otherwise.")
    ] = None
    facilities: Annotated[tuple[FacilityEntry, ...], note("Sites and areas.")] = ()
    enclosures: Annotated[tuple[EnclosureEntry, ...], note("Hutches with an interlock.")] = ()
    roles: Annotated[tuple[RoleEntry, ...], note("Functional contracts of equipment.")] = ()
    families: Annotated[tuple[FamilyEntry, ...], note("Device classes.")] = ()
    models: Annotated[tuple[VendorModelEntry, ...], note("Vendors' catalog entries.")] = ()
    assemblies: Annotated[tuple[AssemblyEntry, ...], note("Blueprints of clusters of devices.")] = ()
    assets: Annotated[tuple[AssetEntry, ...], note("Equipment, as trees from its roots down.")] = ()
    supplies: Annotated[tuple[SupplyEntry, ...], note("Continuous resources.")] = ()
    capabilities: Annotated[tuple[CapabilityEntry, ...], note("Contracts of kinds of operations.")] = ()
    methods: Annotated[tuple[MethodEntry, ...], note("Techniques.")] = ()
    practices: Annotated[tuple[PracticeEntry, ...], note("Methods adopted here.")] = ()
    plans: Annotated[tuple[PlanEntry, ...], note("Practices bound to equipment.")] = ()
    recipes: Annotated[tuple[RecipeEntry, ...], note("Steps with what they leave open.")] = ()
    actors: Annotated[tuple[ActorEntry, ...], note("People and service accounts.")] = ()
    agents: Annotated[tuple[AgentEntry, ...], note("Software that acts by itself.")] = ()
    groups: Annotated[tuple[GroupEntry, ...], note("Who is permitted together.")] = ()
    policies: Annotated[tuple[PolicyEntry, ...], note("Who may do what.")] = ()
    schedules: Annotated[tuple[ScheduleEntry, ...], note("Work on a calendar.")] = ()
    queues: Annotated[tuple[QueueEntry, ...], note("What conducts the next work at a beamline.")] = ()
    clearances: Annotated[tuple[ClearanceEntry, ...], note("Safety forms.")] = ()


SECTIONS: dict[str, type[FileEntry]] = {
    name: get_args(info.annotation)[0] for name, info in BeamlineFile.model_fields.items() if info.default == ()
}  # In the order in which one can refer to another.
