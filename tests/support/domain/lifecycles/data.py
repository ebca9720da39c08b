"""The lives of datasets, their copies, acquisitions, attestations and editions as the specification tabulates them."""

from typing import Any
from uuid import UUID

from baton.domain.data.attestation import ByteReading, CompleteAttestation
from baton.domain.shared.deployment import CatalogueName
from tests.support.domain.assets import facility_world, family, part, root
from tests.support.domain.datasets import (
    CHECKSUM,
    data_world,
    registered_copy,
    registered_dataset,
    storage,
    verified_copy,
    verify_copy,
)
from tests.support.domain.editions import edition_world, member, record_publication, record_withdrawal, registered_edition
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.world import START, World


def catalogued_world() -> World:
    """A world with a registry that mints and a catalogue to enter datasets in."""
    world = edition_world()
    world.ports["deployment"].catalogues = frozenset({CatalogueName.TILED})
    return world


def dataset_begins(world: World) -> tuple[UUID, Scene]:
    return registered_dataset(world), Scene()


DATASET = Lifecycle(
    "Dataset",
    "register_dataset",
    dataset_begins,
    {
        "status": {"Registered": "", "Discarded": "discard_dataset"},
        "intent": {"Trial": "", "Production": "promote_dataset", "Retracted": "promote_dataset demote_dataset"},
    },
    {
        "promote_dataset": Verb(
            "Registered",
            {"intent": "Production"},
            "DatasetCannotPromoteError",
            given=reason_fields,
            allowed_beside={"intent": "Trial"},
        ),
        "demote_dataset": Verb(
            "Registered",
            {"intent": "Retracted"},
            "DatasetCannotDemoteError",
            given=reason_fields,
            allowed_beside={"intent": "Production"},
        ),
        "discard_dataset": Verb("Registered", at("Discarded"), "DatasetCannotDiscardError", given=reason_fields),
        "assign_dataset_external_id": Verb(given=lambda scene: {"external_id": "10.0000/ds-b12"}),
        "mint_dataset_external_id": Verb(
            "Registered",
            {},
            "DatasetCannotMintExternalIdError",
            given=lambda scene: {"draft": True},
            allowed_beside={"intent": "Trial Production"},
        ),
        # Accepted now; what a catalogue says to it is on its entry.
        "retry_catalogue_entry": Verb(quiet=True, given=lambda scene: {"catalogue": CatalogueName.TILED}),
    },
    catalogued_world,
    also_by=("ingest_scan",),
)


def distribution_begins(world: World) -> tuple[UUID, Scene]:
    """A copy beside another one on another supply, which is Verified."""
    dataset_id = registered_dataset(world)
    verified_copy(world, dataset_id, storage(world, "Archive"))
    return registered_copy(world, dataset_id, storage(world)), Scene()


KEPT = "Registered Verified Stale"
DISTRIBUTION = Lifecycle(
    "Distribution",
    "register_distribution",
    distribution_begins,
    {
        "status": {
            "Registered": "",
            "Verified": "verify_copy",
            "Stale": "mark_distribution_stale",
            "Discarded": "discard_distribution",
        }
    },
    {
        "mark_distribution_stale": Verb(KEPT, at("Stale"), "DistributionCannotMarkStaleError", given=reason_fields),
        "discard_distribution": Verb(KEPT, at("Discarded"), "DistributionCannotDiscardError", given=reason_fields),
    },
    data_world,
    from_elsewhere={"verify_copy": lambda world, id, scene: verify_copy(world, id)},
)


def capture_fields(world: World) -> dict[str, Any]:
    """A dataset, and the camera that captured it."""
    camera = part(world, root(world), family_ids=[family(world, "Camera", None, "Capturing")])
    return {"dataset_id": registered_dataset(world), "producing_asset_id": camera, "captured_at": START}


def acquisition_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("record_acquisition", capture_fields(world))), Scene()


ACQUISITION = Lifecycle(
    "Acquisition", "record_acquisition", acquisition_begins, {"status": {"Recorded": ""}}, {}, facility_world
)


def edition_begins(world: World) -> tuple[UUID, Scene]:
    first, second, third = (member(world) for _ in range(3))
    return registered_edition(world, first, second), Scene(member=second, other=third)


EDITION = Lifecycle(
    "Edition",
    "register_edition",
    edition_begins,
    {
        "status": {
            "Registered": "",
            "Sealed": "seal_edition",
            "Published": "seal_edition record_publication",
            "Withdrawn": "seal_edition record_publication record_withdrawal",
        }
    },
    {
        "add_dataset_to_edition": Verb(
            "Registered", {}, "EditionCannotAddDatasetError", given=lambda scene: {"dataset_id": scene.other}
        ),
        "remove_dataset_from_edition": Verb(
            "Registered", {}, "EditionCannotRemoveDatasetError", given=lambda scene: {"dataset_id": scene.member}
        ),
        "seal_edition": Verb("Registered", at("Sealed"), "EditionCannotSealError"),
        "publish_edition": Verb("Sealed", {}, "EditionCannotPublishError", quiet=True),
        "withdraw_edition": Verb(
            "Published",
            {},
            "EditionCannotWithdrawError",
            quiet=True,
            given=lambda scene: {"withdrawal_reason": "wrong sample"},
        ),
    },
    edition_world,
    from_elsewhere={
        "record_publication": lambda world, id, scene: record_publication(world, id),
        "record_withdrawal": lambda world, id, scene: record_withdrawal(world, id),
    },
)


def attestation_begins(world: World) -> tuple[UUID, Scene]:
    copy = registered_copy(world, registered_dataset(world), storage(world))
    reading = ByteReading(verifier_kind="PosixChecksum", digest=CHECKSUM["value"], byte_size=6)
    return world.create(CompleteAttestation(distribution_id=copy, reading=reading)), Scene()


ATTESTATION = Lifecycle(
    "Attestation", "record_attestation", attestation_begins, {"status": {"Recorded": ""}}, {}, data_world
)

LIVES = (DATASET, DISTRIBUTION, ACQUISITION, ATTESTATION, EDITION)
STATELESS = ()
