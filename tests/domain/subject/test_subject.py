"""What is measured: where it sits, how it leaves, and the identifier it gets in the end."""

from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.equipment.asset import ActivateAsset, EnterAssetMaintenance, FaultAsset
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.kernel import Command
from baton.domain.subject.subject import (
    AssignSubjectExternalId,
    DiscardSubject,
    DismountSubject,
    ListSubjects,
    MeasureSubject,
    MountSubject,
    RegisterSubject,
    RemoveSubject,
    ReturnSubject,
    StoreSubject,
    Subject,
    SubjectStatus,
)
from tests.support.domain.assets import facility_world, root
from tests.support.domain.lifecycle_table import StateByAxis
from tests.support.domain.lifecycles.subject import SUBJECT
from tests.support.domain.payloads import payload
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return facility_world()


def active_asset(world: World, name: str = "Rotary stage") -> UUID:
    asset_id = root(world, name=name)
    world.when(ActivateAsset(), on=asset_id)
    return asset_id


def register_subject(world: World, name: str = "Catalyst pellet B-12") -> UUID:
    return world.create(RegisterSubject(name=name))


def mounted_subject(world: World, asset_id: UUID | None = None) -> UUID:
    subject_id = register_subject(world)
    world.when(MountSubject(asset_id=asset_id or active_asset(world), reason="loaded for overview scan"), on=subject_id)
    return subject_id


def subject_of(world: World, id: UUID) -> Subject:
    state: Subject = world.state(Subject, id)
    return state


def test_a_pellet_from_its_arrival_to_its_identifier(world: World) -> None:
    stage, furnace = active_asset(world), active_asset(world, "Furnace cell")
    pellet = register_subject(world)
    world.when(MountSubject(asset_id=stage, reason="loaded for overview scan"), on=pellet)
    world.when(MeasureSubject(), on=pellet)
    world.when(DismountSubject(reason="moved to furnace cell"), on=pellet)
    world.when(MountSubject(asset_id=furnace, reason="in situ heating"), on=pellet)
    world.when(RemoveSubject(), on=pellet)
    world.when(ReturnSubject(), on=pellet)
    world.when(AssignSubjectExternalId(external_id="10.0000/igsn-b12"), on=pellet)
    by = str(OPERATOR)
    assert [(type(event).__name__, payload(event)) for event in world.streams["Subject", pellet]] == [
        ("SubjectRegistered", {"name": "Catalyst pellet B-12", "registered_by": by}),
        ("SubjectMounted", {"asset_id": str(stage), "reason": "loaded for overview scan", "mounted_by": by}),
        ("SubjectMeasured", {"measured_by": by}),
        ("SubjectDismounted", {"from_asset_id": str(stage), "reason": "moved to furnace cell", "dismounted_by": by}),
        ("SubjectMounted", {"asset_id": str(furnace), "reason": "in situ heating", "mounted_by": by}),
        ("SubjectRemoved", {"removed_by": by}),
        ("SubjectReturned", {"returned_by": by}),
        ("SubjectExternalIdAssigned", {"external_id": "10.0000/igsn-b12", "external_id_scheme": "IGSN", "assigned_by": by}),
    ]


def test_a_subject_that_stays_is_stored_or_discarded(world: World) -> None:
    kept, gone = register_subject(world), register_subject(world)
    for subject_id in (kept, gone):
        world.when(RemoveSubject(), on=subject_id)
    (stored,) = world.when(StoreSubject(), on=kept)
    (discarded,) = world.when(DiscardSubject(reason=" oxidised "), on=gone)
    assert payload(stored) == {"stored_by": str(OPERATOR)}
    assert payload(discarded) == {"reason": "oxidised", "discarded_by": str(OPERATOR)}


@pytest.mark.parametrize(
    ("verbs", "lifecycle"),
    [
        ([], "Commissioned"),
        ([ActivateAsset(), EnterAssetMaintenance()], "Maintenance"),
        ([DecommissionAsset()], "Decommissioned"),
    ],
)
def test_only_an_active_asset_takes_a_subject(world: World, verbs: list[Command], lifecycle: str) -> None:
    asset_id, subject_id = root(world), register_subject(world)
    for verb in verbs:
        world.when(verb, on=asset_id)
    with expect_refusal("SubjectMountTargetUnavailableError", "asset_not_active") as caught:
        world.when(MountSubject(asset_id=asset_id, reason="overview"), on=subject_id)
    assert caught.value.facts == {"asset_id": str(asset_id), "lifecycle": lifecycle}
    assert caught.value.status == 409


def test_the_condition_of_the_asset_is_not_looked_at(world: World) -> None:
    asset_id = active_asset(world)
    world.when(FaultAsset(reason="stalls when cold"), on=asset_id)
    assert subject_of(world, mounted_subject(world, asset_id)).status is SubjectStatus.MOUNTED


def test_an_asset_holds_several_subjects_at_once(world: World) -> None:
    changer = active_asset(world)
    subjects = [mounted_subject(world, changer) for _ in range(3)]
    assert {subject_of(world, id).mounted_on_asset_id for id in subjects} == {changer}


def test_mounting_is_refused_for_the_asset_then_the_status_then_the_reason_then_the_lifecycle(world: World) -> None:
    subject_id, commissioned = mounted_subject(world), root(world)

    def mount(asset_id: UUID, reason: str) -> None:
        world.when(MountSubject(asset_id=asset_id, reason=reason), on=subject_id)

    with expect_refusal("AssetNotFoundError"):
        mount(new_id(), "  ")
    with expect_refusal("SubjectCannotMountError", "mounted"):
        mount(commissioned, "  ")
    world.when(DismountSubject(reason="again"), on=subject_id)
    with expect_refusal("InvalidSubjectMountReasonError", "blank"):
        mount(commissioned, "  ")
    with expect_refusal("SubjectMountTargetUnavailableError"):
        mount(commissioned, "overview")


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (RegisterSubject(name=" \t"), "InvalidSubjectNameError"),
        (DismountSubject(reason="  "), "InvalidSubjectDismountReasonError"),
        (AssignSubjectExternalId(external_id="  "), "InvalidSubjectExternalIdError"),
        (AssignSubjectExternalId(external_id="b12", external_id_scheme=" "), "InvalidSubjectExternalIdError"),
    ],
)
def test_blank_texts_are_refused(world: World, command: Command, refusal: str) -> None:
    subject_id = mounted_subject(world)
    with expect_refusal(refusal, "blank"):
        world.when(command, on=None if isinstance(command, RegisterSubject) else subject_id)


def test_a_blank_reason_does_not_discard_a_subject(world: World) -> None:
    subject_id = register_subject(world)
    with expect_refusal("SubjectCannotDiscardError", "received"):
        world.when(DiscardSubject(reason="  "), on=subject_id)
    world.when(RemoveSubject(), on=subject_id)
    with expect_refusal("InvalidSubjectDiscardReasonError", "blank"):
        world.when(DiscardSubject(reason="  "), on=subject_id)


@for_each(
    ("command", "field", "longest"),
    [
        (RegisterSubject, "name", 200),
        (DismountSubject, "reason", 500),
        (DiscardSubject, "reason", 500),
        (AssignSubjectExternalId, "external_id", 200),
        (AssignSubjectExternalId, "external_id_scheme", 50),
    ],
)
def test_texts_have_their_bounds(command: type[Command], field: str, longest: int) -> None:
    others = {"external_id": "b12"} if field == "external_id_scheme" else {}
    assert getattr(command(**others, **{field: "x" * longest}), field) == "x" * longest
    for text in ("", "x" * (longest + 1)):
        with pytest.raises(ValidationError):
            command(**others, **{field: text})


def test_a_subject_keeps_its_first_external_identifier(world: World) -> None:
    subject_id = register_subject(world)
    world.when(AssignSubjectExternalId(external_id=" b12 ", external_id_scheme="ARK"), on=subject_id)
    with expect_refusal("SubjectCannotAssignExternalIdError", "already_assigned") as caught:
        world.when(AssignSubjectExternalId(external_id="  "), on=subject_id)
    assert caught.value.facts == {"external_id": "b12", "external_id_scheme": "ARK"}


@pytest.mark.parametrize("written", ["IGSN:b12", "igsn: b12", "Igsn:"])
def test_an_external_identifier_is_given_without_its_scheme(world: World, written: str) -> None:
    subject_id = register_subject(world)
    with expect_refusal("InvalidSubjectExternalIdError", "scheme_prefix"):
        world.when(AssignSubjectExternalId(external_id=written), on=subject_id)


def test_the_list_shows_where_subjects_sit(world: World) -> None:
    subject_id = mounted_subject(world)
    subject = subject_of(world, subject_id)
    assert dict(ListSubjects.summary.of(subject)) == {
        "subject_id": subject_id,
        "name": "Catalyst pellet B-12",
        "status": "Mounted",
        "mounted_on_asset_id": subject.mounted_on_asset_id,
        "external_id": None,
        "external_id_scheme": None,
        "created_at": subject.created_at,
    }


ALLOWED = [(at, name) for at in SUBJECT.states() for name, verb in SUBJECT.verbs.items() if verb.allows(at)]


@for_each(("standing", "verb"), ALLOWED)
def test_a_subject_has_a_place_exactly_while_it_is_mounted_or_measured(standing: StateByAxis, verb: str) -> None:
    world, subject_id, scene = SUBJECT.prepare_verb(verb, standing)
    world.when(SUBJECT.command(verb, scene), on=subject_id)
    subject = subject_of(world, subject_id)
    in_place = subject.status in (SubjectStatus.MOUNTED, SubjectStatus.MEASURED)
    assert subject.mounted_on_asset_id == (scene.asset_id if in_place else None)
