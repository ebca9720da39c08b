"""The supply gate: which supplies count, when they let work begin or go on, and when the beam is lost."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.asset_tree import MAX_DEPTH, asset_scope
from baton.domain.facility.facility import DecommissionFacility, RegisterFacility
from baton.domain.shared.gates import GateFinding
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.coverage import ADVICE, is_beam_lost, supplies_in_scope, supply_finding
from baton.domain.supply.supply import (
    DeregisterSupply,
    MarkSupplyAvailable,
    MarkSupplyRecovering,
    RegisterSupply,
    RestoreSupply,
    Supply,
    SupplyContact,
    SupplyStatus,
    address_key,
)
from tests.support.domain.assets import hanging_chain, part, requested_reads, root, run_reads
from tests.support.domain.lifecycle_table import Scene
from tests.support.domain.lifecycles.supply import SUPPLY
from tests.support.domain.world import START, World, new_id
from tests.support.tables import for_each

OWN = "own-site"
LIVE = [status for status in SupplyStatus if status is not SupplyStatus.DECOMMISSIONED]


class Plant:
    """A Site with two areas, another Site, and this deployment's own; each area has a beamline."""

    def __init__(self) -> None:
        self.world = World()
        self.site = self.facility("lumen")
        self.hall = self.facility("hall-2", self.site)
        for code, parent in (("hall-3", self.site), ("elsewhere", None), (OWN, None)):
            self.facility(code, parent)
        self.beamline = root(self.world, facility_code="hall-2")
        self.station = part(self.world, self.beamline)
        self.detector = part(self.world, self.station)

    def facility(self, code: str, parent_id: UUID | None = None) -> UUID:
        kind = "Site" if parent_id is None else "Area"
        return self.world.create(RegisterFacility(code=code, display_name=code, kind=kind, parent_id=parent_id))

    def supply(self, facility_code: str = "hall-2", containing_asset_id: UUID | None = None, **fields: Any) -> UUID:
        address = {"kind": "cryogen", "name": str(new_id()), "facility_code": facility_code}
        return self.world.create(RegisterSupply(**{**address, "containing_asset_id": containing_asset_id, **fields}))

    def supply_at(self, status: SupplyStatus, **fields: Any) -> UUID:
        """A supply that came to a status by its own verbs."""
        id = self.supply(**fields)
        for name in SUPPLY.ways["status"][status].split():
            self.world.when(SUPPLY.command(name, Scene()), on=id)
        return id

    def candidates(self, *bound: UUID, kinds: frozenset[str] = frozenset({"cryogen"})) -> set[UUID]:
        scope = run_reads(self.world, asset_scope(bound))
        return {supply.id for supply in run_reads(self.world, supplies_in_scope(kinds, scope, OWN))}


@pytest.fixture
def plant() -> Plant:
    return Plant()


def test_a_supply_of_the_roots_facility_or_its_site_is_in_scope_and_not_of_an_area_below(plant: Plant) -> None:
    own, above = plant.supply("hall-2"), plant.supply("lumen")
    for other in ("hall-3", "elsewhere", OWN):
        plant.supply(other)
    assert plant.candidates(plant.detector) == {own, above}
    assert plant.candidates(root(plant.world, facility_code="lumen")) == {above}


def test_a_supply_of_a_bound_asset_or_one_above_it_is_in_scope(plant: Plant) -> None:
    own = {plant.supply(containing_asset_id=id) for id in (plant.detector, plant.station, plant.beamline)}
    assert plant.candidates(plant.detector) == own
    assert len(plant.candidates(plant.beamline)) == 1


def test_a_siblings_supply_does_not_count(plant: Plant) -> None:
    sibling = part(plant.world, plant.station)
    neighbour = root(plant.world, facility_code="hall-2")
    for other in (sibling, neighbour, part(plant.world, plant.detector)):
        plant.supply(containing_asset_id=other)
    assert plant.candidates(plant.detector) == set()


def test_a_controllers_supply_does_not_count(plant: Plant) -> None:
    controller = root(plant.world, facility_code="hall-3")
    bound = part(plant.world, plant.beamline, controller_id=controller)
    plant.supply("hall-3")
    plant.supply("hall-3", controller)
    assert plant.candidates(bound) == set()


def test_an_asset_in_scope_does_not_bring_in_another_facilitys_supply(plant: Plant) -> None:
    plant.supply("elsewhere", plant.detector)
    assert plant.candidates(plant.detector) == set()


def test_the_roots_supply_counts_from_any_depth(plant: Plant) -> None:
    top, *below = hanging_chain(plant.world, root(plant.world, facility_code="hall-3"), MAX_DEPTH)
    wide = {plant.supply("hall-3", top), plant.supply("hall-3"), plant.supply("lumen")}
    for bound in below:
        assert plant.candidates(bound) == wide


def test_several_roots_bring_in_the_facilities_of_all(plant: Plant) -> None:
    other = root(plant.world, facility_code="elsewhere")
    wide = {plant.supply("hall-2"), plant.supply("lumen"), plant.supply("elsewhere")}
    assert plant.candidates(plant.detector, other) == wide


def test_without_assets_the_deployments_own_facility_counts(plant: Plant) -> None:
    own = plant.supply(OWN)
    plant.supply("hall-2")
    plant.supply(OWN, plant.detector)
    assert plant.candidates() == {own}


def test_a_facilitys_status_does_not_matter(plant: Plant) -> None:
    wide = {plant.supply("hall-2"), plant.supply("lumen")}
    for facility in (plant.hall, plant.site):
        plant.world.when(DecommissionFacility(), on=facility)
    assert plant.candidates(plant.detector) == wide


def test_kinds_are_compared_exactly(plant: Plant) -> None:
    cryogen, beam = plant.supply(), plant.supply(kind="photon_beam")
    plant.supply(kind="Cryogen")
    assert plant.candidates(plant.detector) == {cryogen}
    assert plant.candidates(plant.detector, kinds=frozenset({"cryogen", "photon_beam"})) == {cryogen, beam}
    assert plant.candidates(plant.detector, kinds=frozenset({"vacuum"})) == set()


def test_a_decommissioned_supply_is_no_candidate_even_if_a_row_still_names_it(plant: Plant) -> None:
    supply = plant.supply()
    plant.world.when(DeregisterSupply(reason="line removed"), on=supply)
    plant.world.members["supply-kind", "cryogen"].add(supply)
    assert plant.candidates(plant.detector) == set()


def test_no_kinds_ask_nothing(plant: Plant) -> None:
    scope = run_reads(plant.world, asset_scope([plant.detector]))
    assert requested_reads(plant.world, supplies_in_scope(frozenset(), scope, OWN)) == []
    assert plant.candidates(plant.detector, kinds=frozenset()) == set()


def test_candidates_are_found_in_five_reads_however_many(plant: Plant) -> None:
    for number in range(20):
        plant.supply(kind=f"kind {number % 3}")
    scope = run_reads(plant.world, asset_scope([plant.detector, root(plant.world, facility_code="hall-3")]))
    kinds = frozenset(f"kind {number}" for number in range(3))
    assert len(requested_reads(plant.world, supplies_in_scope(kinds, scope, OWN))) == 5


def supply_of(status: SupplyStatus, kind: str = "cryogen") -> Supply:
    return Supply(
        id=new_id(),
        created_at=START,
        registered_at=START,
        kind=kind,
        name=f"{kind} drop",
        facility_code="hall-2",
        containing_asset_id=None,
        status=status,
    )


TTL = timedelta(seconds=10)
INSTANT = timedelta(microseconds=1)


def gate_finding(
    needed: Iterable[str],
    candidates: Iterable[Supply],
    resuming: bool = False,
    *,
    watched: Iterable[Supply] = (),
    age: timedelta | None = None,
) -> GateFinding | None:
    """Return the gate's finding where the own monitor watches these, and every candidate was last observed so long ago."""
    candidates = list(candidates)
    contacts = {} if age is None else {one.id: SupplyContact(one.id, START - age) for one in candidates}
    facts: Any = SimpleNamespace(monitored_permit_ttl=TTL, monitored_supplies=frozenset(map(address_key, watched)))
    return supply_finding(needed, candidates, contacts, START, facts, resuming)


PASSES_AT_START = {SupplyStatus.AVAILABLE}
PASSES_AT_RESUME = {SupplyStatus.AVAILABLE, SupplyStatus.DEGRADED}
MIXTURES = list(chain.from_iterable(combinations(SupplyStatus, size) for size in range(len(SupplyStatus) + 1)))


@for_each("resuming", [False, True])
@for_each("mixture", MIXTURES)
def test_one_good_supply_of_a_kind_is_enough_and_nothing_less(mixture: tuple[SupplyStatus, ...], resuming: bool) -> None:
    candidates = [supply_of(status) for status in mixture]
    finding = gate_finding({"cryogen"}, candidates, resuming)
    if set(mixture) & (PASSES_AT_RESUME if resuming else PASSES_AT_START):
        assert finding is None
        return
    live = [one for one in candidates if one.status in LIVE]
    never_observed = {"observation_age": None, "monitored": False}
    assert finding is not None
    assert finding.total is (not live)
    assert finding.reason == ("no_supply_available" if live else "no_supply")
    assert finding.facts == {
        "kind": "cryogen",
        "supplies": [{"supply_id": str(one.id), "status": one.status.value, **never_observed} for one in live],
    }


def test_nothing_needed_is_nothing_missing_and_another_kind_does_not_help() -> None:
    assert gate_finding((), [supply_of(SupplyStatus.UNAVAILABLE)]) is None
    assert gate_finding({"cryogen"}, [supply_of(SupplyStatus.AVAILABLE, "Cryogen")]) is not None


def test_the_first_failing_kind_in_order_is_told() -> None:
    candidates = [supply_of(SupplyStatus.AVAILABLE, "air"), supply_of(SupplyStatus.UNKNOWN, "vacuum")]
    finding = gate_finding({"vacuum", "power", "air"}, candidates)
    assert finding is not None
    assert (finding.facts["kind"], finding.total) == ("power", True)
    finding = gate_finding({"vacuum", "air"}, candidates)
    assert finding is not None
    assert (finding.facts["kind"], finding.total) == ("vacuum", False)


def test_the_sentence_names_the_kind_and_what_stands_in_the_way() -> None:
    finding = gate_finding({"cryogen"}, [supply_of(SupplyStatus.DEGRADED)])
    assert finding is not None
    assert finding.detail == ("No supply of kind cryogen in scope is Available: cryogen drop is Degraded; restore it first.")


@for_each("resuming", [False, True])
@for_each("age", [None, TTL + INSTANT, timedelta(seconds=125), -TTL - INSTANT])
@for_each("status", LIVE)
def test_an_own_monitor_that_does_not_confirm_a_supply_leaves_it_unknown(
    status: SupplyStatus, age: timedelta | None, resuming: bool
) -> None:
    supply = supply_of(status)
    finding = gate_finding({"cryogen"}, [supply], resuming, watched=[supply], age=age)
    assert finding is not None
    provides = status in (PASSES_AT_RESUME if resuming else PASSES_AT_START)
    assert (finding.total, finding.reason) == (False, "not_confirmed" if provides else "no_supply_available")
    seconds = None if age is None else age.total_seconds()
    assert finding.facts["supplies"] == [
        {"supply_id": str(supply.id), "status": status.value, "observation_age": seconds, "monitored": True}
    ]


@for_each("resuming", [False, True])
@for_each("age", [timedelta(), TTL, -TTL])
@for_each("status", LIVE)
def test_a_supply_that_its_own_monitor_confirms_is_judged_by_its_status(
    status: SupplyStatus, age: timedelta, resuming: bool
) -> None:
    supply = supply_of(status)
    finding = gate_finding({"cryogen"}, [supply], resuming, watched=[supply], age=age)
    assert (finding is None) is (status in (PASSES_AT_RESUME if resuming else PASSES_AT_START))


@for_each("age", [None, timedelta(days=1)])
def test_where_no_own_monitor_watches_a_persons_word_does_not_grow_old(age: timedelta | None) -> None:
    watched = supply_of(SupplyStatus.AVAILABLE)
    other = replace(watched, id=new_id(), name="another drop")
    assert gate_finding({"cryogen"}, [watched, other], watched=[watched], age=age) is None


@for_each(
    ("age", "said"),
    [
        (timedelta(seconds=14), "was last observed 14 s ago, not within 10 s"),
        (timedelta(seconds=-14), "was last observed 14 s ahead of the clock, not within 10 s"),
        (None, "has no contact on record"),
    ],
)
def test_the_sentence_says_when_a_supply_was_last_observed_and_what_to_look_at(age: timedelta | None, said: str) -> None:
    supply = supply_of(SupplyStatus.AVAILABLE)
    finding = gate_finding({"cryogen"}, [supply], watched=[supply], age=age)
    assert finding is not None
    advice = "see that its monitor and the control system run"
    assert finding.detail == f"No supply of kind cryogen in scope is Available: cryogen drop {said}; {advice}."


@pytest.mark.parametrize("status", sorted(ADVICE))
def test_what_the_sentence_advises_is_allowed_and_brings_the_supply_back(plant: Plant, status: SupplyStatus) -> None:
    verbs = {
        "mark it available": MarkSupplyAvailable,
        "mark it recovering": MarkSupplyRecovering,
        "restore it": RestoreSupply,
    }
    id = plant.supply_at(status)
    advised = sorted((ADVICE[status].find(words), verb) for words, verb in verbs.items() if words in ADVICE[status])
    for _, verb in advised:
        plant.world.when(verb(reason="back"), on=id)
    assert plant.world.state(Supply, id).status is SupplyStatus.AVAILABLE


class NoneKnownError(Conflict):
    """No supply is known."""


class NoneAvailableError(Conflict):
    """No supply is available."""


@for_each(("candidates", "refusal"), [((), NoneKnownError), ((SupplyStatus.UNKNOWN,), NoneAvailableError)])
def test_each_caller_refuses_in_its_own_words(candidates: tuple[SupplyStatus, ...], refusal: type[Conflict]) -> None:
    finding = gate_finding({"cryogen"}, map(supply_of, candidates))
    assert isinstance(finding, GateFinding)
    refused = finding.refusal(NoneKnownError, NoneAvailableError)
    assert type(refused) is refusal
    assert (refused.reason, refused.facts) == (finding.reason, finding.facts)


@for_each("mixture", MIXTURES)
def test_the_beam_is_lost_only_where_it_is_known_to_be_gone(mixture: tuple[SupplyStatus, ...]) -> None:
    beams = [supply_of(status, "photon_beam") for status in mixture]
    provided = {SupplyStatus.AVAILABLE, SupplyStatus.DEGRADED} & set(mixture)
    gone = {SupplyStatus.UNAVAILABLE, SupplyStatus.RECOVERING} & set(mixture)
    assert is_beam_lost(beams) is (bool(gone) and not provided)


def test_only_beam_counts_for_the_beam() -> None:
    assert not is_beam_lost([supply_of(SupplyStatus.UNAVAILABLE, "cryogen")])
    assert is_beam_lost([supply_of(SupplyStatus.UNAVAILABLE, "photon_beam"), supply_of(SupplyStatus.AVAILABLE, "cryogen")])


@pytest.mark.parametrize("status", LIVE)
def test_the_gate_follows_a_supply_through_its_life(plant: Plant, status: SupplyStatus) -> None:
    plant.supply_at(status, containing_asset_id=plant.station)
    scope = run_reads(plant.world, asset_scope([plant.detector]))
    candidates = run_reads(plant.world, supplies_in_scope(frozenset({"cryogen"}), scope, OWN))
    assert (gate_finding({"cryogen"}, candidates) is None) is (status in PASSES_AT_START)
    assert (gate_finding({"cryogen"}, candidates, resuming=True) is None) is (status in PASSES_AT_RESUME)
