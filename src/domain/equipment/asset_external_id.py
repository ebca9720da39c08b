"""The persistent identifier of an asset: assigned to one, minted for all that lack it, and the record published under it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.asset import IN_SERVICE, Asset, AssetExternalIdAssigned, asset
from baton.domain.equipment.asset_tree import ancestor_chain, ancestors_of
from baton.domain.equipment.family import Family
from baton.domain.equipment.model import Model
from baton.domain.equipment.pidinst import ExternalIdAssignment, PidinstRecord, asset_record, exportable
from baton.domain.equipment.values import AssignedExternalId
from baton.domain.kernel import Call, JudgedCreation, JudgedVerb, Outcome, Query, Value
from baton.domain.registry import OpenedWork
from baton.domain.shared.citation import MintedIdentifier, refuse_unminted
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import ExternalIdScheme, FacilityCode, check_facility_code
from baton.domain.shared.reads import Reads, ask, find, find_all, record_of
from baton.domain.shared.refusals import Conflict, ExternalIdMintError, NotFound, Refusal
from baton.domain.shared.writes import Answer, Put, WorkRecord


@asset.command(
    post="/{asset_id}/assign-external-id",
    allowed=IN_SERVICE,
    refuses=[ExternalIdMintError],
    status=201,
    returns=AssignedExternalId,
)
class AssignAssetExternalId(ExternalIdAssignment, JudgedVerb[Asset, MintedIdentifier]):
    """Have a persistent identifier minted and keep it, once and for all.

    The suffix defaults to the asset's id, so a repeat after a lost answer mints the same identifier.
    """

    assignment = AssetExternalIdAssigned

    def gather(self, asset: Asset, call: Call) -> Reads[MintedIdentifier]:
        self.operation.check(self, asset)
        self.refuse_second(asset)
        if asset.virtual_axis:
            raise self.cannot("virtual_axis", "A virtual axis is no instrument; assign identifiers to what it is made of.")
        return (yield from self.mint(asset, (yield from published_record(asset))))


class MintSweepStatus(StrEnum):
    RUNNING = "Running"
    FINISHED = "Finished"


class MintRequest(Value):
    """One asset of a mint sweep, as its workflow asks for it."""

    sweep_id: UUID
    asset_id: UUID


@dataclass(frozen=True)
class MintSweep(WorkRecord):
    """One pass over the assets that lack an identifier: who asked for it, and what became of each asset."""

    relation: ClassVar[str] = "equipment_mint_sweep"
    key: ClassVar[tuple[str, ...]] = ("sweep_id",)
    sweep_id: UUID
    principal_id: UUID
    surface_id: UUID
    correlation_id: UUID
    external_id_scheme: ExternalIdScheme
    facility_code: str | None
    limit_: int
    created_at: datetime
    status: MintSweepStatus = MintSweepStatus.RUNNING
    scanned: int = 0
    minted: list[dict[str, str]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    finished_at: datetime | None = None
    proven_group_ids: list[UUID] = field(default_factory=list)  # The groups that the token of who asked for it told.


class MintedAsset(AssignedExternalId):
    """An asset and the identifier it got."""

    asset_id: UUID


class SkippedAsset(Value):
    """An asset that needed nothing, and why."""

    asset_id: UUID
    reason: str


class FailedAsset(Value):
    """An asset that got no identifier, and why."""

    asset_id: UUID
    error: str
    message: str


class MintSweepView(Value):
    """How far a sweep is, and what became of each asset so far."""

    sweep_id: UUID
    status: MintSweepStatus
    scanned: int
    """Number of assets that were looked at."""
    minted: tuple[MintedAsset, ...]
    """The assets that got an identifier."""
    skipped: tuple[SkippedAsset, ...]
    """The assets that needed nothing, and why."""
    failed: tuple[FailedAsset, ...]
    """The assets that got no identifier, and why."""


class AssetMintSweepNotFoundError(NotFound, context="equipment"):
    """There is no mint sweep with this id."""


class MintSweepAccepted(Value):
    """A sweep that is still under way; `get_work` and `get_asset_mint_sweep` tell how it goes."""

    sweep_id: UUID
    work_id: UUID


@asset.command(
    post="/mint-missing-external-ids",
    status=200,
    returns=MintSweepView,
    work=OpenedWork("mint-sweep"),
    accepted=MintSweepAccepted,
)
class MintMissingAssetExternalIds(JudgedCreation[None]):
    """Assign an identifier to every asset in service that lacks one, oldest first; one failure never stops the rest."""

    external_id_scheme: ExternalIdScheme = ExternalIdScheme.DOI
    facility_code: FacilityCode | None = None
    """Only assets of this facility."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    wait: Annotated[int, Field(ge=0, le=60, description="Seconds to wait for the result.")] = 30

    def examine(self) -> None:
        if self.facility_code is not None:
            check_facility_code(self.facility_code)

    def gather(self, call: Call) -> Reads[None]:
        yield from refuse_unminted(self.external_id_scheme)

    def decide(self, call: Call, _: None) -> Outcome:
        caller = (call.principal_id, call.surface_id, call.correlation_id)
        sweep = MintSweep(call.new_id, *caller, self.external_id_scheme, self.facility_code, self.limit, created_at=call.now)
        sweep = replace(sweep, proven_group_ids=sorted(call.proven_group_ids))
        return [Put(sweep), Answer({"sweep_id": str(sweep.sweep_id), "work_id": str(sweep.sweep_id)})]


def assets_lacking_external_id(ids: Iterable[UUID], facility_code: str | None) -> Reads[list[Asset]]:
    """Return the assets among these that a sweep is to mint for; a facility's are its roots and everything below them."""
    wanted = tuple(ids)
    found = yield from ancestors_of(wanted)
    present = [found[id] for id in wanted if id in found]
    lacking = [one for one in present if one.external_id is None and one.lifecycle in IN_SERVICE and not one.virtual_axis]
    return [one for one in lacking if facility_code in (None, ancestor_chain(found, one.id)[-1].facility_code)]


def with_outcome(sweep: MintSweep, asset_id: UUID, outcome: AssignedExternalId | Refusal) -> MintSweep:
    """Return the sweep after one more asset; an asset that needs nothing any more, or is gone, is skipped.
    Attempts may overlap, so each asset counts once, and one that got its identifier after all did not fail."""
    id = str(asset_id)
    if any(entry["asset_id"] == id for entry in (*sweep.minted, *sweep.skipped)):
        return sweep
    others = [entry for entry in sweep.failed if entry["asset_id"] != id]
    if len(others) < len(sweep.failed):
        if isinstance(outcome, Refusal):
            return sweep
        sweep = replace(sweep, failed=others, scanned=sweep.scanned - 1)
    scanned = replace(sweep, scanned=sweep.scanned + 1)
    match outcome:
        case AssignedExternalId():
            return replace(scanned, minted=[*sweep.minted, {"asset_id": id, **outcome.model_dump(mode="json")}])
        case asset.NotFound():
            return replace(scanned, skipped=[*sweep.skipped, {"asset_id": id, "reason": "not_found"}])
        case AssignAssetExternalId.Cannot(reason="already_assigned" | "decommissioned" as reason):
            return replace(scanned, skipped=[*sweep.skipped, {"asset_id": id, "reason": reason}])
        case _:
            failure = {"asset_id": id, "error": outcome.code, "message": outcome.detail}
            return replace(scanned, failed=[*sweep.failed, failure])


def sweep_view(sweep: MintSweep) -> MintSweepView:
    """Return the view of a sweep."""
    return MintSweepView.model_validate({name: getattr(sweep, name) for name in MintSweepView.model_fields})


@asset.query(get="", path="/mint-sweeps/{sweep_id}", returns=MintSweepView, refuses=[AssetMintSweepNotFoundError])
class GetAssetMintSweep(Query[MintSweepView]):
    """How far a sweep is, and what became of each asset."""

    sweep_id: UUID

    def answer(self, call: Call) -> Reads[MintSweepView]:
        sweep = yield from record_of(MintSweep, sweep_id=self.sweep_id)
        if sweep is None:
            detail = f"There is no mint sweep {self.sweep_id}; check the id."
            raise AssetMintSweepNotFoundError(detail, facts={"missing_ids": [self.sweep_id]})
        return sweep_view(sweep)


class AssetNotPidinstEligibleError(NotFound, context="equipment"):
    """A virtual axis is no instrument and has no PIDINST record."""


class AssetCannotExportPidinstError(Conflict, context="equipment"):
    """The record needs an owner, and a model that names the manufacturer."""


@asset.query(
    get="/{asset_id}/pidinst", returns=PidinstRecord, refuses=[AssetNotPidinstEligibleError, AssetCannotExportPidinstError]
)
class GetAssetPidinst(Query[PidinstRecord]):
    """The asset as a PIDINST record."""

    def answer(self, asset: Asset, call: Call) -> Reads[PidinstRecord]:
        if asset.virtual_axis:
            raise AssetNotPidinstEligibleError("A virtual axis has no PIDINST record; ask for the axes it is made of.")
        return exportable(
            (yield from published_record(asset)),
            AssetCannotExportPidinstError,
            "The asset has no owner; add one first.",
            "The asset has no model, hence no manufacturer; only assets registered with a model are exported.",
        )


def published_record(asset: Asset) -> Reads[PidinstRecord]:
    """Return the asset's record, with everything it refers to."""
    model = yield from find(Model, asset.model_id)
    families = yield from find_all(Family, sorted(asset.family_ids))
    parent = yield from find(Asset, asset.parent_id)
    deployment = yield from ask(DeploymentPort.deployment)
    return asset_record(asset, model, families, parent, deployment)
