"""How a run that happens elsewhere is recorded: what a start is judged by is loaded and judged, and refuses nothing."""

import json
from dataclasses import replace
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.access.actor import ActorKind
from baton.domain.kernel import Call, JudgedCreation, Outcome
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import LIVE_RUNS, Parameters, RunWitnessed, run
from baton.domain.run.witness import BLUESKY_RUNS, LATE, PAST_GATE, WitnessContact
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.gates import GateReport
from baton.domain.shared.reads import Reads, ask, find, holder_of
from baton.domain.shared.refusals import ConcurrencyError, Invalid
from baton.domain.shared.text import MayContainPersonalData, TextsMayContainPersonalData, Word
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Claim, Enlist, Put
from baton.domain.start.run_start import GATES, InvalidRunParametersError, RunRequest, RunStart, load_start
from baton.domain.step.plan_steps import PlanStepPort, SubmittedPlan

MAX_METADATA = 65_536  # Bytes of JSON.
MAX_COUNT = 2**53


class InvalidRunMetadataError(Invalid, context="run", reason="too_large"):
    """The metadata, parameters and references of a witnessed run are more than 64 kB of JSON."""


class WitnessedRunAnswer(AnswerForm):
    """The run that records the one elsewhere, and the procedure whose step it is; null where it is none."""

    run_id: UUID
    procedure_id: UUID | None


class WitnessedStart(NamedTuple):
    """What a witnessed run is recorded by: the run that records it already, or everything that a start is judged by."""

    recorded_id: UUID | None
    start: RunStart | None
    plan: SubmittedPlan | None = None  # The step that has it carried out.
    of_step: bool = False  # Whether it is recorded by the run that this procedure is a phase of.


@run.creation(
    path="/runs/witness",
    stream_id_field="run_id",
    returns=WitnessedRunAnswer,
    callers=[ActorKind.SERVICE_ACCOUNT],
    attempts=3,
)
class WitnessRun(JudgedCreation[WitnessedStart]):
    """Record a run that happens elsewhere, with what every gate says of it; the same Bluesky run is recorded once."""

    document_uid: Annotated[str, Word(200)]
    plan_id: UUID
    plan_name: Annotated[str, Word(200)] | None = None
    """The name of the Bluesky plan."""
    name: Annotated[str, Field(min_length=1, max_length=200)]
    began_at: Instant
    """When the run began, by the start document."""
    holdable: bool = False
    """Whether the run waits at its next checkpoint while it is Held."""
    simulated: bool | None = None
    """Whether it is done on simulated equipment; null where nobody says."""
    subject_id: UUID | None = None
    parameters: dict[str, JsonValue] = {}
    """The arguments of the Bluesky plan; those that the method's schema accepts govern the run."""
    metadata: Annotated[dict[str, JsonValue], TextsMayContainPersonalData()] = {}
    """What else the start document says."""
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}
    override_reason: Annotated[str | None, Field(min_length=1, max_length=500), MayContainPersonalData()] = None
    """Why the gates were overridden where the run began; null where they were not."""

    @property
    def run_id(self) -> UUID:
        """The id of the run, which follows from the Bluesky run."""
        return derived_uuid7(int(self.began_at.timestamp() * 1000), BLUESKY_RUNS, self.document_uid)

    def examine(self) -> None:
        if (size := len(json.dumps([self.metadata, self.parameters, self.external_refs]))) > MAX_METADATA:
            told = f"{size:,} bytes of JSON, and {MAX_METADATA:,} are kept"
            detail = f"Metadata, parameters and references are {told}; leave some out."
            raise InvalidRunMetadataError(detail, facts={"bytes": size})

    def gather(self, call: Call) -> Reads[WitnessedStart]:
        plan = yield from self.load_plan_step()
        procedure = None if plan is None else (yield from find(Procedure, plan.procedure_id))
        if procedure is not None and procedure.parent_run_id is not None:
            return WitnessedStart(procedure.parent_run_id, None, plan, of_step=True)
        recorded_id = yield from holder_of(BLUESKY_RUNS, self.document_uid)
        if recorded_id is not None:
            return WitnessedStart(recorded_id, None, plan)
        request = RunRequest(
            name=self.name,
            plan_id=self.plan_id,
            subject_id=self.subject_id,
            override_parameters=self.parameters,
            external_refs=self.external_refs,
        )
        return WitnessedStart(None, (yield from load_start(request, call)), plan)

    def load_plan_step(self) -> Reads[SubmittedPlan | None]:
        """Return the step that has the Bluesky plan carried out, by the key or task in the start document."""
        own, task_id = self.metadata.get("baton"), self.metadata.get("blueapi_task_id")
        key = own.get("key") if isinstance(own, dict) else None
        key, task_id = (text if isinstance(text, str) else None for text in (key, task_id))
        if key is None and task_id is None:
            return None
        return (yield from ask(PlanStepPort.submitted_plan, key, task_id))

    def decide(self, call: Call, facts: WitnessedStart) -> Outcome:
        if facts.start is None:
            assert facts.recorded_id is not None, "it is recorded already"
            answer = witnessed_answer(facts.recorded_id, facts.plan)
            return [Put(self.first_contact(facts.recorded_id, call, facts.plan)), answer] if facts.of_step else [answer]
        start, id = facts.start, self.run_id
        report, late = GateReport(), call.now - self.began_at > LATE
        accepted, effective = accepted_parameters(start, self.parameters)
        report.ask_all(GATES, ("start_run",), with_known_parameters(start, accepted))
        witnessed = RunWitnessed(
            name=self.name.strip() or self.document_uid,
            plan_id=self.plan_id,
            subject_id=self.subject_id,
            document_uid=self.document_uid,
            plan_name=self.plan_name,
            began_at=self.began_at,
            holdable=self.holdable and not late,
            simulated=self.simulated,
            late=late,
            override_parameters=accepted,
            effective_parameters=effective,
            parameters_schema_revision=start.method.parameters_schema_revision,
            external_refs=self.external_refs,
            metadata=self.metadata,
            acknowledged_cautions=() if late else start.acknowledged_cautions,
            gates=None if late else tuple(report.verdicts),
            override_reason=self.override_reason,
            witnessed_by=call.principal_id,
        )
        live = [] if late else [Enlist(LIVE_RUNS, str(self.plan_id))]
        claim = Claim(BLUESKY_RUNS, self.document_uid, rival=ConcurrencyError("The run is recorded by another request."))
        is_past = self.override_reason is not None or (not late and bool(report.refusals))
        past = [Enlist(PAST_GATE, "")] if is_past else []
        contact = self.first_contact(id, call, facts.plan)
        return [witnessed, claim, Put(contact), *live, *past, witnessed_answer(id, facts.plan)]

    def first_contact(self, run_id: UUID, call: Call, plan: SubmittedPlan | None) -> WitnessContact:
        """Return the row of what is known of the witness, with its first word."""
        announced = self.metadata.get("num_points")
        if isinstance(announced, bool) or not isinstance(announced, int) or not 0 <= announced <= MAX_COUNT:
            announced = None
        return WitnessContact(
            run_id=run_id,
            heard_at=call.now,
            lag_seconds=0,
            refused=0,
            dropped=0,
            events={},
            submission_key=None if plan is None else plan.submission_key,
            document_uid=self.document_uid,
            num_points=announced,
            last_document="start",
            witness_id=call.principal_id,
            last_document_at=self.began_at,
        )


def witnessed_answer(run_id: UUID, plan: SubmittedPlan | None) -> Answer:
    """Return the answer that names the run that records the one elsewhere, and the procedure whose step it is."""
    return Answer({"run_id": str(run_id), "procedure_id": None if plan is None else str(plan.procedure_id)})


def accepted_parameters(start: RunStart, parameters: Parameters) -> tuple[Parameters, Parameters]:
    """Return those of these parameters that the method's schema accepts, and what governs the run with them."""
    if (governing := merged_parameters(start, parameters)) is not None:
        return parameters, governing
    accepted: Parameters = {}
    governing = dict(start.plan.default_parameters)
    for name, value in parameters.items():
        if (merged := merged_parameters(start, {**accepted, name: value})) is not None:
            accepted[name], governing = value, merged
    return accepted, governing


def with_known_parameters(start: RunStart, accepted: Parameters) -> RunStart:
    """Return a start without the arguments of a Bluesky plan that the method does not know, which close no gate."""
    known = {*accepted, *(start.method.parameters_schema or {}).get("properties", {})}
    parameters = {name: value for name, value in start.request.override_parameters.items() if name in known}
    return replace(start, request=start.request.model_copy(update={"override_parameters": parameters}))


def merged_parameters(start: RunStart, parameters: Parameters) -> Parameters | None:
    """Return the plan's defaults with these parameters merged in; None where the method's schema refuses them."""
    defaults, revision = start.plan.default_parameters, start.plan.parameters_schema_revision
    try:
        return start.method.merged_parameters(defaults, revision, parameters, InvalidRunParametersError)[0]
    except InvalidRunParametersError:
        return None
