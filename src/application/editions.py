"""Work on identifiers: an edition is published under its DOI or withdrawn, and the DOI of a dataset that must not be cited
any more is marked. The registry comes first and the record second; both may be repeated."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.application.commands import execute_with_retry
from baton.application.long_work import TaskWork
from baton.application.ports import Minter
from baton.application.unit_of_work import require_state
from baton.domain.data.dataset import TOMBSTONE, Dataset, tombstone_text
from baton.domain.data.edition import (
    PUBLICATION,
    PUBLISHED,
    SEALED,
    WITHDRAWAL,
    Edition,
    PersistentIdentifierMintError,
    PersistentIdentifierTombstoneError,
    PublishedEdition,
    PublishEdition,
    RecordEditionPublication,
    RecordEditionWithdrawal,
    WithdrawEdition,
)
from baton.domain.data.exports import MintDatasetExternalId, published_citation
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError, Unavailable
from baton.domain.shared.tasks import Task

LASTING = ("unknown", "rejected")  # the reasons of a registry that another try gets again
DOI = ExternalIdScheme.DOI


class IdentifierRegistryUnavailableError(Unavailable):
    """The identifier registry cannot be reached now, or none is configured; the work is taken up again later."""


@dataclass
class IdentifierWork(TaskWork):
    """Work that a registry has a part in."""

    minter: Minter | None

    @property
    def registry(self) -> Minter:
        """The registry; raise where none is configured any more."""
        if self.minter is None:
            detail = "No identifier registry is configured here; set PID_MINTER, or ask the operator of the service to."
            raise ExternalIdMintingNotConfiguredError(detail, reason="no_minter")
        return self.minter


class EditionPublications(IdentifierWork):
    """Long work: a DOI is minted for a sealed edition, and recorded with the manifest that names it."""

    workflow = PUBLICATION
    command = PublishEdition
    readable_with = "GetEdition"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        edition = await self._edition(task)
        if edition.status is SEALED:
            await self._publish(edition, task)
            edition = await self._edition(task)
        assert edition.external_id is not None, "what is published has its DOI"
        assert edition.external_id_scheme is not None, "an identifier has its scheme"
        answer = PublishedEdition(
            edition_id=edition.id, external_id=edition.external_id, external_id_scheme=edition.external_id_scheme
        )
        return answer.model_dump(mode="json")

    async def _publish(self, edition: Edition, task: Task) -> None:
        caller = self.caller_of(task)
        citation = await self.commands.read(published_citation(edition, all_named=True), caller)
        try:
            minted = await self.registry.mint(DOI, str(edition.id), citation)
        except ExternalIdMintError as error:
            raise PersistentIdentifierMintError(error.detail, reason=error.reason, facts=error.facts) from None
        record = RecordEditionPublication(external_id=minted.value, external_id_scheme=minted.scheme)
        with suppress(RecordEditionPublication.Cannot):  # another attempt has recorded it
            await execute_with_retry(self.commands, record, caller, target_id=edition.id)

    async def _edition(self, task: Task) -> Edition:
        return await require_state(self.commands.store, Edition, UUID(task.request["edition_id"]))


class EditionWithdrawals(IdentifierWork):
    """Long work: the DOI of a published edition is marked, and the withdrawal recorded."""

    workflow = WITHDRAWAL
    command = WithdrawEdition
    readable_with = "GetEdition"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        edition = await require_state(self.commands.store, Edition, UUID(task.request["edition_id"]))
        reason = task.request["withdrawal_reason"]
        if edition.status is PUBLISHED:
            assert edition.external_id is not None, "a published edition has its DOI"
            try:
                await self.registry.tombstone(DOI, edition.external_id, reason)
            except ExternalIdMintError as error:
                raise PersistentIdentifierTombstoneError(error.detail, reason=error.reason, facts=error.facts) from None
            record = RecordEditionWithdrawal(withdrawal_reason=reason)
            with suppress(RecordEditionWithdrawal.Cannot):  # another attempt has recorded it
                await execute_with_retry(self.commands, record, self.caller_of(task), target_id=edition.id)
        return {}


class DatasetTombstones(IdentifierWork):
    """Work that nobody waits for: the DOI of a demoted or discarded dataset is marked as soon as the registry is there."""

    workflow = TOMBSTONE
    command = MintDatasetExternalId
    readable_with = "GetDataset"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        dataset = await require_state(self.commands.store, Dataset, UUID(task.request["dataset_id"]))
        assert dataset.external_id is not None, "only a dataset with a DOI has it marked"
        try:
            await self.registry.tombstone(DOI, dataset.external_id, tombstone_text(dataset))
        except (ExternalIdMintError, ExternalIdMintingNotConfiguredError) as error:
            if error.reason in LASTING:
                raise
            raise IdentifierRegistryUnavailableError(error.detail, reason=error.reason) from None
        return {}
