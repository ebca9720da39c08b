"""Exports: a dataset, an edition and a sample as records of DataCite 4.6, as they are minted; and the DOI of a dataset, that
is minted on request. The crate of an edition is its manifest; the record of an instrument is with the assets."""

import json

from baton.domain.data.citation import creators_of, dataset_citation, edition_citation, subject_citation
from baton.domain.data.dataset import (
    Dataset,
    DatasetExternalIdAssigned,
    DatasetIntent,
    DatasetStatus,
    actuation_kind_now,
    dataset,
)
from baton.domain.data.edition import (
    REGISTERED,
    Edition,
    EditionDatasetDistributionNotFoundError,
    EditionManifestNotFoundError,
    edition,
    edition_contents,
    edition_facts,
    refuse_uncitable,
)
from baton.domain.equipment.values import AssignedExternalId
from baton.domain.kernel import Call, Document, JudgedVerb, Outcome, Query
from baton.domain.run.run import Run
from baton.domain.shared.citation import (
    DATACITE_JSON,
    Citation,
    IdentifierPort,
    MintedIdentifier,
    datacite_json,
    doi_in,
    refuse_unminted,
)
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.reads import Reads, ask, find
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError
from baton.domain.shared.writes import Answer
from baton.domain.step.results import ActuationKind
from baton.domain.subject.subject import Subject, subject


def datacite_document(citation: Citation, external_id: str | None) -> Document:
    """Return a record of DataCite as a file; one without a DOI leaves it out."""
    record = datacite_json(citation, doi_in(external_id))
    return Document(DATACITE_JSON, json.dumps(record, ensure_ascii=False, indent=1).encode())


@dataset.query(get="/{dataset_id}/datacite", media_types=[DATACITE_JSON])
class GetDatasetDatacite(Query[Document]):
    """The dataset as a record of DataCite 4.6, with its parents, instruments and sample; what is minted is the same."""

    def answer(self, dataset: Dataset, call: Call) -> Reads[Document]:
        return datacite_document((yield from dataset_citation(dataset)), dataset.external_id)


@edition.query(
    get="/{edition_id}/datacite",
    media_types=[DATACITE_JSON],
    refuses=[EditionManifestNotFoundError, EditionDatasetDistributionNotFoundError],
)
class GetEditionDatacite(Query[Document]):
    """The sealed edition as a record of DataCite 4.6, with its members.

    People whose names the caller may not read are withheld; what is minted names all creators.
    """

    def answer(self, edition: Edition, call: Call) -> Reads[Document]:
        if edition.status is REGISTERED:
            detail = "The edition has no publisher and no year before it is sealed; seal it first."
            raise EditionManifestNotFoundError(detail, reason="not_sealed")
        citation = yield from published_citation(edition, all_named=False)
        return datacite_document(citation, edition.external_id)


def published_citation(edition: Edition, *, all_named: bool) -> Reads[Citation]:
    """Return what a registry publishes of a sealed edition."""
    facts = yield from edition_facts(edition, edition.publisher_facility_code)
    refuse_uncitable(facts)
    creators = yield from creators_of(edition.creator_ids, all_named=all_named)
    return edition_citation(edition_contents(edition, facts, edition.external_id), creators)


@subject.query(get="/{subject_id}/igsn", media_types=[DATACITE_JSON])
class GetSubjectIgsn(Query[Document]):
    """The sample as the record that DataCite 4.6 publishes under its IGSN."""

    def answer(self, subject: Subject, call: Call) -> Reads[Document]:
        return datacite_document((yield from subject_citation(subject)), subject.external_id)


@dataset.command(
    post="/{dataset_id}/mint-external-id",
    allowed=[DatasetStatus.REGISTERED],
    refuses=[ExternalIdMintError],
    status=201,
    returns=AssignedExternalId,
)
class MintDatasetExternalId(JudgedVerb[Dataset, MintedIdentifier]):
    """Have a DOI minted for a Production dataset and keep it, once and for all; a draft of it is possible before.

    It follows from the dataset's id, so a repeat after a lost answer mints the same one.
    """

    draft: bool = False
    """Whether the DOI is only reserved; minted again without it, it is published."""

    def require(self, dataset: Dataset) -> None:
        if dataset.external_id is not None and (self.draft or not dataset.external_id_draft):
            detail = "The dataset has an external identifier already; it keeps that one."
            kept = {"external_id": dataset.external_id, "external_id_scheme": dataset.external_id_scheme}
            raise self.cannot("already_assigned", detail, **kept)
        if dataset.intent is DatasetIntent.RETRACTED:
            raise self.cannot("retracted", "The dataset is Retracted, and nothing should cite it; mint for its successor.")

    def gather(self, dataset: Dataset, call: Call) -> Reads[MintedIdentifier]:
        self.operation.check(self, dataset)
        yield from refuse_unminted(ExternalIdScheme.DOI)
        if self.draft:
            deployment = yield from ask(DeploymentPort.deployment)
            if not deployment.drafts_minted:
                detail = "The configured registry reserves no identifiers; promote the dataset, and mint without draft."
                raise ExternalIdMintingNotConfiguredError(detail, reason="no_drafts")
        else:
            yield from self._refuse_unfit(dataset)
        citation = (yield from dataset_citation(dataset)).model_copy(update={"findable": not self.draft})
        return (yield from ask(IdentifierPort.mint, ExternalIdScheme.DOI, str(dataset.id), citation))

    def _refuse_unfit(self, dataset: Dataset) -> Reads[None]:
        """Refuse to publish the DOI of something that nothing may rest on."""
        kind = dataset.producing_actuation_kind
        if kind is None:
            kind = yield from actuation_kind_now((yield from find(Run, dataset.producing_run_id)))
        if kind in (ActuationKind.SIMULATED, ActuationKind.HYBRID):
            detail = f"It comes from a {kind.lower()} plant, and nobody should find it; give draft to reserve a DOI."
            raise self.cannot("simulated", detail, actuation_kind=kind)
        if dataset.intent is not DatasetIntent.PRODUCTION:
            detail = "The dataset is a Trial, which nothing may rest on; promote it first, or give draft to reserve a DOI."
            raise self.cannot("not_promoted", detail)

    def decide(self, dataset: Dataset, call: Call, minted: MintedIdentifier) -> Outcome:
        kept = {"external_id": minted.value, "external_id_scheme": minted.scheme.value}
        assigned = DatasetExternalIdAssigned(**kept, assigned_by=call.principal_id, draft=self.draft)
        return [assigned, Answer(kept)]
