"""The page that an identifier leads to: what the registered metadata say of a thing, and whether it was withdrawn."""

from datetime import datetime
from typing import NamedTuple, assert_never
from uuid import UUID

from baton.domain.data.citation import creators_of, dataset_citation, edition_citation, subject_citation
from baton.domain.data.dataset import REGISTERED, Dataset, DatasetDemoted, DatasetDiscarded, DatasetIntent, tombstone_text
from baton.domain.data.edition import Edition, edition_contents, edition_facts
from baton.domain.data.exports import GetDatasetDatacite, GetEditionDatacite, GetSubjectIgsn
from baton.domain.equipment import asset_external_id, fixture
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.pidinst import citation_of
from baton.domain.kernel import Query
from baton.domain.shared.citation import Citation, LandingKind
from baton.domain.shared.reads import Reads, find, latest_events
from baton.domain.subject.subject import Subject

SHOWN_BY: dict[LandingKind, type[Query]] = {
    LandingKind.ASSETS: asset_external_id.GetAssetPidinst,
    LandingKind.DATASETS: GetDatasetDatacite,
    LandingKind.EDITIONS: GetEditionDatacite,
    LandingKind.FIXTURES: fixture.GetFixturePidinst,
    LandingKind.SUBJECTS: GetSubjectIgsn,
}
"""The query that shows the same to callers who may ask it, where the page is not for everybody."""
PERSISTENT = frozenset({"doi", "handle", "igsn"})  # The schemes of identifiers that registries publish.


class Withdrawal(NamedTuple):
    """When something was taken back, and the reason that everybody may read."""

    at: datetime
    reason: str


class LandingPage(NamedTuple):
    """What a page shows, the persistent identifier that leads to it, and its withdrawal; None where there is none."""

    citation: Citation
    identifier: str | None
    withdrawal: Withdrawal | None = None


def landing_page_of(kind: LandingKind, id: UUID) -> Reads[LandingPage | None]:
    """Return the page of one thing; None where it is not on record, or has nothing that could be registered yet."""
    match kind:
        case LandingKind.ASSETS:
            asset = yield from find(Asset, id)
            if asset is None or asset.virtual_axis:
                return None
            return LandingPage(citation_of((yield from asset_external_id.published_record(asset))), identifier_of(asset))
        case LandingKind.FIXTURES:
            found = yield from find(Fixture, id)
            record = None if found is None else (yield from fixture.published_record(found))
            return None if found is None or record is None else LandingPage(citation_of(record), identifier_of(found))
        case LandingKind.SUBJECTS:
            subject = yield from find(Subject, id)
            citation = None if subject is None else (yield from subject_citation(subject))
            return None if subject is None or citation is None else LandingPage(citation, identifier_of(subject))
        case LandingKind.DATASETS:
            dataset = yield from find(Dataset, id)
            return None if dataset is None else (yield from page_of_dataset(dataset))
        case LandingKind.EDITIONS:
            edition = yield from find(Edition, id)
            return None if edition is None or edition.external_id is None else (yield from page_of_edition(edition))
        case _:
            assert_never(kind)


def page_of_dataset(dataset: Dataset) -> Reads[LandingPage]:
    """Return the page of a dataset; one that is retracted or discarded says so, as its registry does."""
    citation, withdrawal = (yield from dataset_citation(dataset)), None
    if dataset.status is not REGISTERED or dataset.intent is DatasetIntent.RETRACTED:
        (event,) = yield from latest_events(dataset.id, DatasetDemoted, DatasetDiscarded, count=1)
        withdrawal = Withdrawal(event.occurred_at, tombstone_text(dataset))
    return LandingPage(citation, None if dataset.external_id_draft else identifier_of(dataset), withdrawal)


def page_of_edition(edition: Edition) -> Reads[LandingPage]:
    """Return the page of an edition that was published, with all its creators, as they were registered."""
    facts = yield from edition_facts(edition, edition.publisher_facility_code)
    creators = yield from creators_of(edition.creator_ids, all_named=True)
    citation = edition_citation(edition_contents(edition, facts, edition.external_id), creators)
    withdrawal = None
    if edition.withdrawn_at is not None:
        withdrawal = Withdrawal(edition.withdrawn_at, edition.withdrawal_reason or "")
    return LandingPage(citation, edition.external_id, withdrawal)


def identifier_of(holder: Asset | Fixture | Dataset | Subject) -> str | None:
    """Return the persistent identifier of a thing, or None."""
    return holder.external_id if (holder.external_id_scheme or "").lower() in PERSISTENT else None
