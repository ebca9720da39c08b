"""The stable surface for a site's own package: everything that actions, control adapters, deciders, minters and executors of
Bluesky plans need. A package offers them by entry points, each under a name: `baton.actions`, `baton.control`,
`baton.deciders`, `baton.minters` and `baton.plan_executors` (see `docs/extending.md`). Names listed here keep their meaning
within a major version, others need not."""

from baton.application.conduct.actions import (
    ActionBody,
    ActionCall,
    ActionFailedError,
    ActionHeld,
    ActionOutcomeUnknown,
    ActionRefusedError,
    ActionResult,
    FindableAction,
    InvalidActionParametersError,
    NotBegun,
    Wish,
    touches,
)
from baton.application.conduct.deciders import (
    DecideAccessDeniedError,
    DecideColdStartError,
    DecideError,
    DecideEvidenceRejectedError,
    Decider,
    DecideTimeoutError,
)
from baton.application.conduct.plan_executors import (
    ExecutorCatalogue,
    PlanEnd,
    PlanExecutor,
    PlanExecutorBusyError,
    PlanExecutorSilentError,
    PlanExecutorUnavailableError,
    PlanJob,
    PlanOutcomeUnknown,
    PlanPhase,
    PlanRejectedError,
    PlanState,
)
from baton.application.control import (
    READ_TIMEOUT,
    WRITE_TIMEOUT,
    Control,
    ControlAccessDeniedError,
    ControlError,
    ControlLimits,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    Fence,
    MalformedControlAddressError,
    Quality,
    Reading,
    ReadingKind,
    Timekeeper,
    always_open,
)
from baton.application.ports import Minter
from baton.domain.recipe.offered_plans import OfferedPlan
from baton.domain.shared.action_signals import ActionForecast
from baton.domain.shared.citation import (
    Citation,
    CitedDate,
    CitedDescription,
    CitedIdentifier,
    CitedParty,
    CitedRelation,
    MintedIdentifier,
)
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError
from baton.domain.steering.steering import (
    SteeringAdvice,
    SteeringAxis,
    SteeringBudget,
    SteeringEvidence,
    SteeringObjective,
    SteeringObjectiveKind,
    SteeringObservation,
    SteeringSpace,
    SteeringVerdict,
)
from baton.domain.step.results import Measured

__all__ = [
    "READ_TIMEOUT",  # seconds a control system has to connect and to give a value
    "WRITE_TIMEOUT",  # seconds a control system has to confirm a write, unless the writer says otherwise
    "ActionBody",  # the signature of an action: control, clock and parameters in, a JSON object out
    "ActionCall",  # one call of an action that can be found again: key, parameters, port, clock, fence, token, wish
    "ActionFailedError",  # raised by such an action whose work ended without success
    "ActionForecast",  # what an action says that it would do, before it does anything
    "ActionHeld",  # raised by such an action that has paused, because a hold was wished for
    "ActionOutcomeUnknown",  # raised by such an action where nobody can tell what became of its work
    "ActionRefusedError",  # raised by an action before its first write: nothing was begun
    "ActionResult",  # the result of an action that can be found again: a JSON object, and what of it was measured
    "Citation",  # the metadata that a minter publishes of one identifier
    "CitedDate",  # a date in a citation
    "CitedDescription",  # a text in a citation
    "CitedIdentifier",  # another identifier in a citation
    "CitedParty",  # an institution or a person in a citation
    "CitedRelation",  # a related identifier in a citation
    "Control",  # the port of a control adapter: read, write, subscribe, close; limits where it knows them
    "ControlAccessDeniedError",  # raised where the control system's access security says no
    "ControlError",  # the base of every fault of a control adapter
    "ControlLimits",  # between which values a signal may be set
    "ControlNotConnectedError",  # raised where there is no channel to an address
    "ControlTimeoutError",  # raised where no value or confirmation came in time
    "ControlValueCoercionError",  # raised where a value does not fit the type of its signal
    "ControlWriteRejectedError",  # raised where the control system does not accept a write
    "DecideAccessDeniedError",  # raised where a decider does not let this deployment ask it
    "DecideColdStartError",  # raised where a decider has too little evidence
    "DecideError",  # the base of every fault of a decider
    "DecideEvidenceRejectedError",  # raised where a decider cannot serve such a search
    "DecideTimeoutError",  # raised where a decider took too long
    "Decider",  # the port of a decider: advise_next, close
    "ExecutorCatalogue",  # what an executor of Bluesky plans offers
    "ExternalIdMintError",  # raised by a minter whose registry issued nothing: a sentence, reason= and facts=
    "ExternalIdMintingNotConfiguredError",  # raised by a minter that is asked for what it does not issue
    "ExternalIdScheme",  # DOI or Handle
    "Fence",  # what `write` calls right before it sends; it raises where nothing may be sent any more
    "FindableAction",  # the port of an action that can be found again: submit, find, collect, stop
    "InvalidActionParametersError",  # raised by an action that does not accept its parameters
    "MalformedControlAddressError",  # raised where a control system has no addresses of this form
    "Measured",  # one value in an observation
    "MintedIdentifier",  # an identifier that a minter issued
    "Minter",  # the port of a minter: schemes, mint, tombstone, aclose
    "NotBegun",  # answered by `find` where it is certain that nothing was begun, and nothing will be
    "OfferedPlan",  # one plan of an executor: digest, docstring, schema, what it touches
    "PlanEnd",  # how a plan ended
    "PlanExecutor",  # the port of an executor of Bluesky plans
    "PlanExecutorBusyError",  # raised by an executor that does something else; nothing was begun
    "PlanExecutorSilentError",  # raised by an executor without an answer
    "PlanExecutorUnavailableError",  # raised by an executor that can do nothing now; nothing was begun
    "PlanJob",  # one plan with its parameters, key and token
    "PlanOutcomeUnknown",  # raised by an executor where nobody can tell whether a plan was begun
    "PlanPhase",  # how far a plan is
    "PlanRejectedError",  # raised by an executor that refuses a plan; nothing was begun
    "PlanState",  # what an executor says of a plan
    "Quality",  # the control system's judgement of a value
    "Reading",  # one value of a signal, as plain JSON data
    "ReadingKind",  # scalar, array, image, choice or table
    "SteeringAdvice",  # what a decider answers: measure there next, or stop
    "SteeringAxis",  # one direction of a search: an interval, or choices
    "SteeringBudget",  # how much a search may still spend
    "SteeringEvidence",  # everything that a decider may know
    "SteeringObjective",  # what a search is for
    "SteeringObjectiveKind",  # minimize, maximize, satisfy or explore
    "SteeringObservation",  # what one pass measured, and where
    "SteeringSpace",  # the axes of a search
    "SteeringVerdict",  # measure or stop
    "Timekeeper",  # the clock of an action: now() and sleep(seconds)
    "Wish",  # what the record asks of an action under way: continue, hold or stop
    "always_open",  # the fence of code that stops motion or restores a safe state
    "touches",  # declares which parameters of an action are addresses that it writes or reads
]
