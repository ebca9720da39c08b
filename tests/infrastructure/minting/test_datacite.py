"""DOIs from a registry that is slow, fails, loses connections and has things of its own."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest

from baton.domain.shared.citation import CitedDate, CitedIdentifier, CitedParty, CitedRelation
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError
from baton.infrastructure.minting import DataCiteMinter
from tests.infrastructure.minting.test_minter_contract import DOI, ROTARY, registry
from tests.support.infrastructure.doi_registry_server import ACCOUNT, PASSWORD, PREFIX, Registry

__all__ = ["registry"]

VALUE = f"{PREFIX}/rotary-1"


@pytest.fixture
async def minter(registry: Registry) -> AsyncIterator[DataCiteMinter]:
    minter = DataCiteMinter(registry.url, PREFIX, ACCOUNT, PASSWORD, deadline=5)
    yield minter
    await minter.aclose()


async def mint(minter: DataCiteMinter) -> str:
    return (await minter.mint(DOI, "rotary-1", ROTARY)).value


async def test_a_doi_is_published_with_its_metadata(minter: DataCiteMinter, registry: Registry) -> None:
    lumen = CitedParty(name="Lumen", identifier="https://ror.org/1", identifier_type="ROR")
    record = ROTARY.model_copy(
        update={
            "creators": (CitedParty(name="Acme Motion"),),
            "hosts": (lumen,),
            "subjects": ("RotaryStage",),
            "dates": (CitedDate(type="Other", date=date(2026, 3, 1), information="Commissioned"),),
            "related_identifiers": (CitedRelation(identifier="10.1/2", identifier_type="DOI", relation_type="IsPartOf"),),
            "alternate_identifiers": (CitedIdentifier(identifier="A-42", identifier_type="SerialNumber"),),
        }
    )
    assert (await minter.mint(DOI, "rotary-1", record)).value == VALUE
    kept = registry.records[VALUE]
    assert (kept["state"], kept["url"]) == ("findable", "https://baton.example/assets/7")
    assert (kept["titles"], kept["publicationYear"]) == ([{"title": "Rotary"}], 2026)
    assert kept["types"] == {"resourceTypeGeneral": "Instrument"}
    assert [one["name"] for one in kept["creators"]] == ["Acme Motion"]
    (host,) = kept["contributors"]
    assert (host["name"], host["contributorType"]) == ("Lumen", "HostingInstitution")
    assert host["nameIdentifiers"] == [{"nameIdentifier": "https://ror.org/1", "nameIdentifierScheme": "ROR"}]
    assert kept["dates"] == [{"dateType": "Other", "date": "2026-03-01", "dateInformation": "Commissioned"}]
    assert kept["relatedIdentifiers"][0]["relationType"] == "IsPartOf"
    assert kept["alternateIdentifiers"] == [{"alternateIdentifier": "A-42", "alternateIdentifierType": "SerialNumber"}]


async def test_a_maker_that_is_not_known_is_not_made_up(minter: DataCiteMinter, registry: Registry) -> None:
    await mint(minter)
    assert [one["name"] for one in registry.records[VALUE]["creators"]] == [":unav"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((500, {"errors": []}), "failed"),
        ((503, b"<html>maintenance</html>"), "failed"),
        ((302, b""), "failed"),
        ((429, {"errors": [{"title": "Too many requests"}]}), "busy"),
        ((401, {"errors": [{"title": "Bad credentials."}]}), "account_refused"),
        ((403, {"errors": [{"title": "Not yours."}]}), "account_refused"),
        ((422, {"errors": [{"source": "titles", "title": "can't be blank"}]}), "rejected"),
        ((201, b"{"), "answer_unusable"),
        ((201, b"[" * 100_000), "answer_unusable"),
        ((201, []), "answer_unusable"),
        ((201, {"data": None}), "answer_unusable"),
        ((201, {"data": {"id": "10.1/other"}}), "answer_unusable"),
        ("lost", "unreachable"),
    ],
)
async def test_a_failing_registry_is_told_apart_and_the_next_try_gives_one_doi(
    minter: DataCiteMinter, registry: Registry, failure: Any, reason: str
) -> None:
    registry.failures.append(failure)
    with pytest.raises(ExternalIdMintError) as refused:
        await mint(minter)
    assert refused.value.reason == reason
    assert PASSWORD not in refused.value.detail
    assert await mint(minter) == VALUE
    assert [record["state"] for record in registry.records.values()] == ["findable"]


async def test_a_registry_that_does_not_answer_in_time_is_given_up(registry: Registry) -> None:
    registry.failures.append("silent")
    impatient = DataCiteMinter(registry.url, PREFIX, ACCOUNT, PASSWORD, deadline=0.3)
    with pytest.raises(ExternalIdMintError, match=r"no answer within 0\.3 s") as refused:
        await mint(impatient)
    assert refused.value.reason == "unreachable"
    await impatient.aclose()


async def test_a_registry_that_is_not_there_is_said_to_be_away() -> None:
    minter = DataCiteMinter("http://127.0.0.1:1", PREFIX, ACCOUNT, PASSWORD)
    with pytest.raises(ExternalIdMintError, match="cannot be reached"):
        await mint(minter)
    await minter.aclose()


async def test_an_answer_that_comes_twice_counts_once(minter: DataCiteMinter, registry: Registry) -> None:
    registry.failures.append("twice")
    assert await mint(minter) == VALUE
    assert await mint(minter) == VALUE
    assert list(registry.records) == [VALUE]


async def test_a_draft_that_a_lost_try_left_is_published(minter: DataCiteMinter, registry: Registry) -> None:
    registry.records[VALUE] = {"state": "draft", "url": ROTARY.landing_page}
    assert await mint(minter) == VALUE
    assert (registry.records[VALUE]["state"], registry.records[VALUE]["titles"]) == ("findable", [{"title": "Rotary"}])


@pytest.mark.parametrize("url", ["https://elsewhere.example/7", None])
async def test_a_doi_of_something_else_is_left_alone(minter: DataCiteMinter, registry: Registry, url: str | None) -> None:
    registry.records[VALUE] = {"state": "findable", "url": url}
    with pytest.raises(ExternalIdMintError, match="something else") as refused:
        await mint(minter)
    assert refused.value.reason == "taken"
    assert registry.records[VALUE] == {"state": "findable", "url": url}


async def test_letters_count_alike_and_the_registrys_spelling_is_kept(minter: DataCiteMinter, registry: Registry) -> None:
    for _ in range(2):
        assert (await minter.mint(DOI, "Rotary-1", ROTARY)).value == VALUE
    assert list(registry.records) == [VALUE]


async def test_an_identifier_that_would_lead_nowhere_is_not_registered(minter: DataCiteMinter, registry: Registry) -> None:
    record = ROTARY.model_copy(update={"landing_page": "/fixtures/7"})
    with pytest.raises(ExternalIdMintingNotConfiguredError) as refused:
        await minter.mint(DOI, "rotary-1", record)
    assert (refused.value.reason, registry.asked) == ("no_landing_page", [])


async def test_a_tombstone_hides_the_doi_says_why_and_is_set_once(minter: DataCiteMinter, registry: Registry) -> None:
    await mint(minter)
    for _ in range(2):
        await minter.tombstone(DOI, VALUE, "scrapped")
    kept = registry.records[VALUE]
    assert (kept["state"], kept["descriptions"][0]["description"]) == ("registered", "scrapped")
    assert [method for method, _ in registry.asked] == ["POST", "GET", "PUT", "GET"]


@pytest.mark.parametrize(("failure", "reason"), [((404, {"errors": []}), "unknown"), ((500, b""), "failed")])
async def test_a_tombstone_that_cannot_be_set_is_refused(
    minter: DataCiteMinter, registry: Registry, failure: Any, reason: str
) -> None:
    await mint(minter)
    registry.failures.append(failure)
    with pytest.raises(ExternalIdMintError) as refused:
        await minter.tombstone(DOI, VALUE, "scrapped")
    assert refused.value.reason == reason
    assert registry.records[VALUE]["state"] == "findable"
