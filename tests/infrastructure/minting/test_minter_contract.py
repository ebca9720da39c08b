"""What every minter promises: one suffix is one identifier, however often it is asked for."""

from collections.abc import AsyncIterator, Iterator

import pytest

from baton.application.ports import Minter
from baton.domain.shared.citation import Citation
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.infrastructure.minting import DataCiteMinter, DeterministicMinter
from tests.support.infrastructure.doi_registry_server import ACCOUNT, PASSWORD, PREFIX, Registry, running_registry

DOI = ExternalIdScheme.DOI
ROTARY = Citation(
    landing_page="https://baton.example/assets/7",
    resource_type="Instrument",
    title="Rotary",
    publisher="Lumen",
    publication_year=2026,
)


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running_registry() as registry:
        yield registry


@pytest.fixture(params=["development", "datacite"])
async def minter(request: pytest.FixtureRequest, registry: Registry) -> AsyncIterator[Minter]:
    real = DataCiteMinter(registry.url, PREFIX, ACCOUNT, PASSWORD)
    yield DeterministicMinter() if request.param == "development" else real
    await real.aclose()


async def test_an_identifier_is_a_prefix_and_the_suffix_without_scheme_or_address(minter: Minter) -> None:
    minted = await minter.mint(DOI, "rotary-1", ROTARY)
    assert minted.scheme is DOI
    prefix, _, suffix = minted.value.partition("/")
    assert (prefix.startswith("10."), suffix) == (True, "rotary-1")


async def test_a_suffix_is_minted_once_and_others_beside_it(minter: Minter) -> None:
    first, again, other = [await minter.mint(DOI, suffix, ROTARY) for suffix in ("one", "one", "two")]
    assert first == again != other


async def test_every_scheme_that_is_offered_is_issued(minter: Minter) -> None:
    assert DOI in minter.schemes
    for scheme in minter.schemes:
        assert (await minter.mint(scheme, "rotary-1", ROTARY)).scheme is scheme


async def test_an_identifier_is_taken_out_of_the_catalog_once_and_again(minter: Minter) -> None:
    minted = await minter.mint(DOI, "rotary-1", ROTARY)
    for _ in range(2):
        await minter.tombstone(DOI, minted.value, "scrapped")
