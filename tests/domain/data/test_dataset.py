"""A data product: what is recorded of its origin, and when results may rest on it."""

import json
from typing import Any
from uuid import UUID

import pytest

from baton.domain.data.dataset import (
    CHILDREN,
    MAX_PARENTS,
    PRODUCTS,
    USERS,
    AssignDatasetExternalId,
    DatasetIntent,
    DatasetRegistered,
    DatasetStatus,
    DemoteDataset,
    DiscardDataset,
    PromoteDataset,
)
from baton.domain.procedure.procedure import HoldCause, ProcedureAborted, ProcedureCompleted, ProcedureHeld, ProcedureStarted
from baton.domain.run.run import PHASES, RunCompleted, RunStatus, RunStopped
from baton.domain.step.results import ActuationKind
from baton.domain.subject.subject import RegisterSubject
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.datasets import (
    CHECKSUM,
    CONTENT,
    data_world,
    dataset_of,
    procedure_with,
    promoted_dataset,
    registered_dataset,
    run_with,
)
from tests.support.domain.run_lives import EVENTFUL, LIVES_OF_RUNS, run_events
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

UNSAID: dict[str, Any] = {"decided_by_decision_id": None}
STARTED = {"conduct_id": None, "command_name": None}
PROMOTE = PromoteDataset(reason="frame count and flats checked")


@pytest.fixture
def world() -> World:
    return data_world()


def completed_run(world: World, kind: ActuationKind | None = None, **fields: Any) -> UUID:
    return run_with(world, RunCompleted(actuation_kind=kind), **fields)


def completed_procedure(world: World, kind: ActuationKind | None) -> UUID:
    ended = ProcedureCompleted(actuation_kind=kind, termination_reason=None)
    return procedure_with(world, ProcedureStarted(**STARTED), ended)


def revisions(world: World, count: int) -> list[UUID]:
    calibration_id = rotation_center(world)
    return [append_revision(world, calibration_id) for _ in range(count)]


def test_a_dataset_keeps_everything_that_is_known_of_its_origin(world: World) -> None:
    pin, other = revisions(world, 2)
    run, procedure = completed_run(world, pins=[pin, other]), completed_procedure(world, ActuationKind.PHYSICAL)
    subject, parent = world.create(RegisterSubject(name="Catalyst pellet B-12")), registered_dataset(world)
    origin = {"producing_run_id": run, "producing_procedure_id": procedure, "subject_id": subject}
    id = registered_dataset(world, **origin, derived_from=[parent], used_calibration_ids=[pin], name="  volume ")
    [event] = world.streams["Dataset", id]
    assert json.loads(event.payload()) == {
        "dataset_id": str(id),
        "name": "volume",
        **CONTENT,
        **{name: str(one) for name, one in origin.items()},
        "producing_run_end_state": "Completed",
        "producing_actuation_kind": "Physical",
        "derived_from": [str(parent)],
        "used_calibration_ids": [str(pin)],
        "intent": "Trial",
        "registered_by": str(OPERATOR),
        "occurred_at": json.loads(event.payload())["occurred_at"],
    }
    state = dataset_of(world, id)
    assert (state.status, state.intent, state.external_id) == (DatasetStatus.REGISTERED, DatasetIntent.TRIAL, None)
    assert {kind for kind, key in world.members if world.members[kind, key] == {id}} == {CHILDREN, PRODUCTS, USERS}


def test_a_dataset_may_say_nothing_of_its_origin(world: World) -> None:
    state = dataset_of(world, registered_dataset(world))
    unsaid = (state.producing_run_id, state.producing_run_end_state, state.producing_actuation_kind, state.subject_id)
    assert unsaid == (None, None, None, None)
    assert (state.derived_from, state.used_calibration_ids) == (frozenset(), frozenset())


def test_what_is_a_set_is_written_in_one_order(world: World) -> None:
    parents = [registered_dataset(world) for _ in range(3)]
    written = set()
    for order in (parents, parents[::-1]):
        id = registered_dataset(world, derived_from=order)
        written.add(str(json.loads(world.streams["Dataset", id][0].payload())["derived_from"]))
    assert written == {str(sorted(map(str, parents)))}


@for_each(
    ("fields", "code", "reason"),
    [
        ({"name": " \t"}, "InvalidDatasetNameError", "blank"),
        ({"uri": "  "}, "InvalidDatasetUriError", "blank"),
        ({"uri": "/data/scan.h5"}, "InvalidDatasetUriError", "no_scheme"),
        ({"uri": "file:"}, "InvalidDatasetUriError", "no_scheme"),
        ({"uri": "1file:/data"}, "InvalidDatasetUriError", "no_scheme"),
        ({"uri": "file:///data/a\nb"}, "InvalidDatasetUriError", "control_character"),
        *(
            ({"uri": f"{scheme}:alert(1)"}, "InvalidDatasetUriError", "scheme_not_allowed")
            for scheme in ("javascript", "JavaScript", "vbscript", "data", "about", "view-source")
        ),
        ({"checksum": {**CHECKSUM, "algorithm": "md5"}}, "InvalidDatasetChecksumError", "unknown_algorithm"),
        ({"checksum": {**CHECKSUM, "value": "a" * 63}}, "InvalidDatasetChecksumError", "not_a_digest"),
        ({"checksum": {**CHECKSUM, "value": "A" * 64}}, "InvalidDatasetChecksumError", "not_a_digest"),
        ({"checksum": {**CHECKSUM, "value": "a" * 64 + "\n"}}, "InvalidDatasetChecksumError", "not_a_digest"),
        ({"byte_size": -1}, "InvalidDatasetByteSizeError", "negative"),
        ({"byte_size": 2**53}, "InvalidDatasetByteSizeError", "too_large"),
        ({"encoding": {"media_type": " "}}, "InvalidDatasetEncodingError", "media_type"),
        (
            {"encoding": {"media_type": "text/csv", "conforms_to": [f"https://example.org/{n}" for n in range(17)]}},
            "InvalidDatasetEncodingError",
            "too_many_profiles",
        ),
        ({"encoding": {"media_type": "text/csv", "conforms_to": ["NXtomo"]}}, "InvalidDatasetEncodingError", "no_scheme"),
    ],
)
def test_a_wrong_description_of_the_bytes_is_refused(fields: dict[str, Any], code: str, reason: str) -> None:
    with expect_refusal(code, reason):
        registered_dataset(data_world(), **fields)


@for_each(
    "fields",
    [
        {"byte_size": 0},
        {"uri": "s3://archive/pellet-b12/scan_001.h5"},
        {"uri": "ark:/12148/btv1b8449691v"},
        {"checksum": {**CHECKSUM, "algorithm": "sha256-tree"}},
        {"name": "x" * 200},
        {"encoding": {"media_type": "text/csv"}},
    ],
)
def test_a_description_at_its_bounds_is_taken(fields: dict[str, Any]) -> None:
    registered_dataset(data_world(), **fields)


def test_what_a_dataset_refers_to_must_exist_in_the_order_it_is_given(world: World) -> None:
    run, procedure = completed_run(world), completed_procedure(world, None)
    subject, parent = world.create(RegisterSubject(name="Pellet")), registered_dataset(world)
    given: dict[str, Any] = {"producing_run_id": run, "producing_procedure_id": procedure, "subject_id": subject}
    given |= {"derived_from": [parent]}
    missing: dict[str, Any] = {name: new_id() for name in given} | {"name": " ", "byte_size": -1}
    missing |= {"derived_from": sorted([new_id(), new_id()]), "used_calibration_ids": [new_id()]}
    for name, code in {
        "producing_run_id": "ProducingRunNotFoundError",
        "producing_procedure_id": "ProducingProcedureNotFoundError",
        "subject_id": "LinkedSubjectNotFoundError",
        "derived_from": "DerivedFromDatasetsNotFoundError",
        "used_calibration_ids": "CalibrationRevisionNotFoundError",
    }.items():
        with expect_refusal(code) as caught:
            registered_dataset(world, **missing)
        wrong = missing[name] if isinstance(missing[name], list) else [missing[name]]
        assert caught.value.facts == {"missing_ids": [str(one) for one in wrong]}
        missing[name] = given.get(name, [])
    with expect_refusal("InvalidDatasetNameError"):
        registered_dataset(world, **missing)


def test_a_procedure_that_has_not_ended_has_produced_nothing_and_an_aborted_one_has(world: World) -> None:
    hold = ProcedureHeld(reason="beam dump", cause=HoldCause.OPERATOR, actuation_kind=None, **UNSAID)
    for ways in ((), (ProcedureStarted(**STARTED),), (ProcedureStarted(**STARTED), hold)):
        with expect_refusal("ProducingProcedureNotTerminalError", "not_terminal"):
            registered_dataset(world, producing_procedure_id=procedure_with(world, *ways))
    abort = ProcedureAborted(reason="smoke", actuation_kind=ActuationKind.PHYSICAL)
    aborted = procedure_with(world, ProcedureStarted(**STARTED), abort)
    state = dataset_of(world, registered_dataset(world, producing_procedure_id=aborted))
    assert state.producing_actuation_kind is ActuationKind.PHYSICAL


@for_each("name", sorted(LIVES_OF_RUNS))
def test_a_run_in_any_status_has_datasets(name: str) -> None:
    world = data_world()
    state = dataset_of(world, registered_dataset(world, producing_run_id=run_with(world, *run_events(name))))
    assert state.producing_run_end_state is LIVES_OF_RUNS[name][1]


def test_nothing_is_derived_from_a_discarded_dataset(world: World) -> None:
    kept, *gone = (registered_dataset(world) for _ in range(3))
    for id in gone:
        world.when(DiscardDataset(reason="wrong sample"), on=id)
    with expect_refusal("DerivedFromDatasetsDiscardedError", "discarded") as caught:
        registered_dataset(world, derived_from=[kept, *gone])
    assert caught.value.facts == {"dataset_ids": [str(id) for id in sorted(gone)]}


def test_something_may_be_derived_from_a_retracted_dataset(world: World) -> None:
    retracted = promoted_dataset(world)
    world.when(DemoteDataset(reason="wrong energy"), on=retracted)
    registered_dataset(world, derived_from=[retracted])


def test_only_calibrations_that_the_run_pinned_are_used(world: World) -> None:
    pinned, *foreign = revisions(world, 3)
    run = completed_run(world, pins=[pinned])
    registered_dataset(world, producing_run_id=run, used_calibration_ids=[pinned])
    with expect_refusal("DatasetCalibrationsNotSubsetError", "not_pinned") as caught:
        registered_dataset(world, producing_run_id=run, used_calibration_ids=[pinned, *foreign])
    assert caught.value.facts == {"revision_ids": [str(id) for id in sorted(foreign)]}
    with expect_refusal("DatasetCalibrationsNotSubsetError", "not_pinned"):
        registered_dataset(world, used_calibration_ids=[pinned])


def test_parents_and_calibrations_have_a_bound(world: World) -> None:
    parents = [registered_dataset(world) for _ in range(MAX_PARENTS + 1)]
    registered_dataset(world, derived_from=parents[1:])
    with expect_refusal("InvalidDerivedFromError", "too_many"):
        registered_dataset(world, derived_from=parents)
    pins = revisions(world, 65)
    run = completed_run(world, pins=pins)
    registered_dataset(world, producing_run_id=run, used_calibration_ids=pins[1:])
    with expect_refusal("InvalidUsedCalibrationsError", "too_many"):
        registered_dataset(world, producing_run_id=run, used_calibration_ids=pins)


def test_what_it_was_done_on_comes_from_the_procedure_then_from_the_run(world: World) -> None:
    run, procedure = completed_run(world, ActuationKind.SIMULATED), completed_procedure(world, ActuationKind.PHYSICAL)
    both = registered_dataset(world, producing_run_id=run, producing_procedure_id=procedure)
    assert dataset_of(world, both).producing_actuation_kind is ActuationKind.PHYSICAL
    of_run = registered_dataset(world, producing_run_id=run)
    assert dataset_of(world, of_run).producing_actuation_kind is ActuationKind.SIMULATED


def test_a_run_under_way_has_the_kind_of_its_phases(world: World) -> None:
    run = run_with(world)
    phase = completed_procedure(world, ActuationKind.HYBRID)
    world.members[PHASES, str(run)].add(phase)
    id = registered_dataset(world, producing_run_id=run)
    assert dataset_of(world, id).producing_actuation_kind is ActuationKind.HYBRID


@for_each("name", EVENTFUL)
def test_only_what_a_completed_or_stopped_run_left_is_promoted(name: str) -> None:
    world = data_world()
    id = registered_dataset(world, producing_run_id=run_with(world, *run_events(name)))
    status = LIVES_OF_RUNS[name][1]
    if status in (RunStatus.COMPLETED, RunStatus.STOPPED):
        world.when(PROMOTE, on=id)
    else:
        with expect_refusal("DatasetCannotPromoteError", "run_not_good") as caught:
            world.when(PROMOTE, on=id)
        assert caught.value.facts["run_status"] == status


def test_a_dataset_of_a_run_that_turned_out_to_be_simulated_is_not_promoted(world: World) -> None:
    run = run_with(world)
    id = registered_dataset(world, producing_run_id=run)
    world.given(run, RunStopped(reason="enough", actuation_kind=ActuationKind.SIMULATED, **UNSAID))
    with expect_refusal("DatasetCannotPromoteError", "simulated_origin"):
        world.when(PROMOTE, on=id)


@for_each("kind", [ActuationKind.SIMULATED, ActuationKind.HYBRID])
def test_what_was_simulated_in_part_or_whole_is_not_promoted(kind: ActuationKind) -> None:
    world = data_world()
    for origin in (
        {"producing_run_id": completed_run(world, kind)},
        {"producing_procedure_id": completed_procedure(world, kind)},
    ):
        id = registered_dataset(world, **origin)
        with expect_refusal("DatasetCannotPromoteError", "simulated_origin") as caught:
            world.when(PROMOTE, on=id)
        assert caught.value.facts == {"actuation_kind": kind}


def test_a_procedure_that_does_not_say_what_it_was_done_on_proves_nothing(world: World) -> None:
    procedure = completed_procedure(world, None)
    alone = registered_dataset(world, producing_procedure_id=procedure)
    of_run = registered_dataset(
        world, producing_procedure_id=procedure, producing_run_id=completed_run(world, ActuationKind.PHYSICAL)
    )
    for id in (alone, of_run):
        with expect_refusal("DatasetCannotPromoteError", "origin_unproven"):
            world.when(PROMOTE, on=id)


def test_an_unknown_kind_without_a_procedure_is_promoted(world: World) -> None:
    for run in (None, completed_run(world)):
        world.when(PROMOTE, on=registered_dataset(world, producing_run_id=run))


def test_results_rest_only_on_parents_that_are_production(world: World) -> None:
    good, trial, retracted = promoted_dataset(world), registered_dataset(world), promoted_dataset(world)
    world.when(DemoteDataset(reason="wrong energy"), on=retracted)
    world.when(PROMOTE, on=registered_dataset(world, derived_from=[good]))
    child = registered_dataset(world, derived_from=[good, trial, retracted])
    with expect_refusal("DatasetCannotPromoteError", "parents_not_production") as caught:
        world.when(PROMOTE, on=child)
    assert caught.value.facts == {"dataset_ids": [str(id) for id in sorted([trial, retracted])]}


def test_nothing_follows_by_itself_when_a_dataset_is_demoted_or_discarded(world: World) -> None:
    parent = promoted_dataset(world)
    child = promoted_dataset(world, derived_from=[parent])
    world.when(DemoteDataset(reason="wrong energy"), on=parent)
    world.when(DiscardDataset(reason="wrong sample"), on=parent)
    assert (dataset_of(world, child).status, dataset_of(world, child).intent) == ("Registered", "Production")


@for_each(
    ("command", "code"),
    [
        (PromoteDataset(reason=" "), "InvalidPromotionReasonError"),
        (DemoteDataset(reason=" "), "InvalidDemotionReasonError"),
        (DiscardDataset(reason=" "), "InvalidDatasetDiscardReasonError"),
    ],
)
def test_a_blank_reason_is_refused_after_the_state(command: Any, code: str) -> None:
    world = data_world()
    id = promoted_dataset(world) if isinstance(command, DemoteDataset) else registered_dataset(world)
    with expect_refusal(code, "blank"):
        world.when(command, on=id)
    world.when(DiscardDataset(reason="wrong sample"), on=id)
    with expect_refusal(type(command).Cannot, "discarded"):
        world.when(command, on=id)


def test_a_blank_reason_is_refused_before_what_others_do(world: World) -> None:
    with expect_refusal("InvalidPromotionReasonError"):
        world.when(PromoteDataset(reason=" "), on=registered_dataset(world, producing_run_id=run_with(world)))


def test_bytes_are_registered_again_only_where_that_is_allowed_or_their_dataset_is_discarded(world: World) -> None:
    first = registered_dataset(world)
    with expect_refusal("DatasetAlreadyIngestedError", "already_ingested") as caught:
        registered_dataset(world, name="the same", allow_duplicate=False)
    assert caught.value.facts == {"dataset_id": str(first), "duplicate_of": str(first)}
    second = registered_dataset(world)
    assert world.answer == {"dataset_id": str(second), "duplicate_of": str(first)}
    world.when(DiscardDataset(reason="wrong sample"), on=first)
    world.when(DiscardDataset(reason="wrong sample"), on=second)
    third = registered_dataset(world, allow_duplicate=False)
    assert world.answer == {"dataset_id": str(third), "duplicate_of": None}


def test_an_identifier_is_assigned_once_in_any_status(world: World) -> None:
    id = registered_dataset(world)
    world.when(DiscardDataset(reason="wrong sample"), on=id)
    [event] = world.when(AssignDatasetExternalId(external_id=" 10.0000/ds-b12 "), on=id)
    state = dataset_of(world, id)
    assert (state.external_id, state.external_id_scheme) == ("10.0000/ds-b12", "DOI")
    assert event.assigned_by == OPERATOR  # type: ignore[attr-defined]
    with expect_refusal("DatasetCannotAssignExternalIdError", "already_assigned") as caught:
        world.when(AssignDatasetExternalId(external_id="10.0000/other"), on=id)
    assert caught.value.facts == {"external_id": "10.0000/ds-b12", "external_id_scheme": "DOI"}


@for_each(
    ("external_id", "reason"),
    [
        *(("", "blank"), ("  ", "blank"), ("x" * 201, "too_long"), ("10.0000/x\ny", "control_character")),
        *(("doi:10.0000/x", "scheme_prefix"), ("DOI:10.0000/x", "scheme_prefix"), ("https://doi.org/10.0000/x", "address")),
    ],
)
def test_an_identifier_is_bare(external_id: str, reason: str) -> None:
    world = data_world()
    with expect_refusal("InvalidDatasetExternalIdError", reason):
        world.when(AssignDatasetExternalId(external_id=external_id), on=registered_dataset(world))


def test_every_text_of_a_dataset_may_contain_personal_data() -> None:
    assert DatasetRegistered.personal == {"name", "uri"}
