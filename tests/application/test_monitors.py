"""The monitors on simulated signals and a record in memory: what is observed is recorded, and nothing better."""

import asyncio
import itertools
import operator
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import orjson
import pytest
from structlog.testing import capture_logs

from baton.application.control import ControlNotConnectedError, Reading
from baton.application.monitoring.monitors import (
    MonitorAccount,
    MonitorIntervals,
    ReportOutcome,
    ReportPace,
    follow_signal,
    repeat_latest,
)
from baton.application.monitoring.observations import ControlObserver, SignalObservation, permit_signals
from baton.application.monitoring.plant_monitors import EnclosureMonitor, SupplyMonitor
from baton.application.ports import StoreUnavailableError
from baton.application.service import Service
from baton.domain.access.actor import monitor_id
from baton.domain.enclosure.enclosure import (
    DecommissionEnclosure,
    EnclosurePermitStatus,
    ObserveEnclosureStatus,
    RegisterEnclosure,
)
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.supply.supply import DeregisterSupply, MarkSupplyAvailable, RestoreSupply
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.application.monitored_plant import HUTCH, PERMIT, QUICK, MemoryRecord, bad, good, seeded_memory
from tests.support.tables import for_each
from tests.support.waiting import until

LEVEL = "LN:DEWAR:LEVEL"
NITROGEN = {
    "name": "Nitrogen",
    "kind": "cryogen",
    "signal": LEVEL,
    "readings": [
        {"status": "Unavailable", "below": 5},
        {"status": "Degraded", "below": 20},
        {"status": "Recovering", "above": 25},
    ],
}
NITROGEN_ONLY: dict[str, Any] = {"supplies": [NITROGEN], "enclosures": {}}
OFTEN = replace(QUICK, refresh=0.05)


async def until_confirmed(record: MemoryRecord, **address: Any) -> None:
    """Wait until a supply is observed once more."""
    before = await record.supply_contact(**address)

    async def is_confirmed() -> bool:
        contact = await record.supply_contact(**address)
        return contact is not None and (before is None or contact > before)

    await until(is_confirmed)


def permits_are(record: MemoryRecord, *statuses: str) -> Callable[[], Awaitable[bool]]:
    """Whether exactly these permits were recorded of the hutch."""

    async def matches() -> bool:
        return await record.permits() == list(statuses)

    return matches


def supply_events_are(record: MemoryRecord, *events: str, **address: Any) -> Callable[[], Awaitable[bool]]:
    """Whether exactly these events were recorded of the supply since its registration."""

    async def matches() -> bool:
        return await record.supply_events(**address) == ["SupplyRegistered", *events]

    return matches


class ScriptedObserver:
    """An observer that says what a test gives it: an observation, a failure to raise, or None to end."""

    def __init__(self) -> None:
        self.script: asyncio.Queue[SignalObservation | Exception | None] = asyncio.Queue()
        self.subscribed = 0

    def say(self, status: str, code: str = HUTCH) -> None:
        said = SignalObservation(code=code, observed_status=status, reason="as told", source_kind="Script", source_id="test")
        self.script.put_nowait(said)

    async def observe(self, code: str) -> AsyncGenerator[SignalObservation, None]:
        self.subscribed += 1
        while (item := await self.script.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


class LossyService:
    """The service behind a line that can break when a command was carried out and before it is answered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.broken = False

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        executed = await self._service.execute(*arguments, **options)
        if self.broken:
            raise StoreUnavailableError("the answer was lost")
        return executed


@asynccontextmanager
async def scripted_monitor(record: MemoryRecord, account: MonitorAccount | None = None) -> AsyncIterator[ScriptedObserver]:
    """The monitor of the hutch on a scripted observer."""

    async def report_settled(name: str) -> None:
        assert name == HUTCH

    observer = ScriptedObserver()
    monitor = EnclosureMonitor(account or record.account(), observer, "facility", [HUTCH], report_settled, QUICK)
    task = asyncio.create_task(monitor.run())
    try:
        yield observer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def equal(found: Awaitable[Any], wanted: Any) -> bool:
    return bool(await found == wanted)


async def contacted_since(record: MemoryRecord, than: datetime, name: str = HUTCH) -> bool:
    """Whether an enclosure was observed again since then."""
    return bool(await record.contact(name) > than)


@pytest.fixture
def plant() -> Simulator:
    return Simulator({PERMIT: 1, LEVEL: 80})


@pytest.fixture
async def record() -> MemoryRecord:
    return await seeded_memory()


class TestPermits:
    async def test_drop_and_recovery_are_recorded(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            plant.set_reading(PERMIT, good("OFF"))
            await until(permits_are(record, "Permitted", "NotPermitted"))
            plant.set_reading(PERMIT, good(True))
            await until(permits_are(record, "Permitted", "NotPermitted", "Permitted"))
            assert (await record.observations())[-1] == (
                "Permitted",
                "PSS:B:PERMIT reads True",
                "ProcessVariable:PSS:B:PERMIT",
            )

    async def test_what_a_source_with_a_fast_clock_says_counts_without_its_time(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            plant.set_reading(PERMIT, Reading(value=0, sampled_at=datetime.now(UTC) + timedelta(hours=1)))
            await until(permits_are(record, "Permitted", "NotPermitted"))

    async def test_bad_quality_and_an_unknown_value_are_unknown(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            plant.set_reading(PERMIT, bad(1))
            await until(permits_are(record, "Permitted", "Unknown"))
            plant.set_reading(PERMIT, good(1))
            await until(permits_are(record, "Permitted", "Unknown", "Permitted"))
            plant.set_reading(PERMIT, good("PERHAPS\x00"))
            await until(permits_are(record, "Permitted", "Unknown", "Permitted", "Unknown"))

    async def test_a_lost_signal_is_unknown_at_once(self, record: MemoryRecord, plant: Simulator) -> None:
        no_interval_ends = MonitorIntervals(refresh=3600, resubscribe=3600, retry=3600, first_reading=3600, sweep=3600)
        async with record.running_monitors(plant, no_interval_ends):
            await until(permits_are(record, "Permitted"))
            plant.simulate_disconnect(PERMIT)
            await until(permits_are(record, "Permitted", "Unknown"))
            assert (await record.observations())[-1] == (
                "Unknown",
                "The permit signal was lost: PSS:B:PERMIT is not connected.",
                "Monitor:EnclosureMonitor",
            )

    async def test_a_stream_that_ends_in_good_order_is_unknown_until_it_is_followed_again(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            plant.simulate_end(PERMIT)
            await until(permits_are(record, "Permitted", "Unknown", "Permitted"))
            assert (await record.observations())[1][1] == "The permit signal ended."

    async def test_a_signal_that_stays_away_is_unknown_once_and_recorded_again_when_it_is_back(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            plant.simulate_disconnect(PERMIT)
            await until(permits_are(record, "Permitted", "Unknown"))
            contact = await record.contact()
            plant.simulate_connect(PERMIT)
            await until(lambda: plant.subscriptions(PERMIT))
            assert await record.contact() == contact, "a signal without a value is no observation"
            plant.set_reading(PERMIT, good(0))
            await until(permits_are(record, "Permitted", "Unknown", "NotPermitted"))

    async def test_a_monitor_that_stops_leaves_no_permit_behind(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
        assert (await record.observations())[-1][:2] == ("Unknown", "The monitor stopped.")

    async def test_enclosures_do_not_touch_each_other(self, record: MemoryRecord, plant: Simulator) -> None:
        plant.set_reading("PSS:C", good(1))
        both = {HUTCH: PERMIT, "Hutch C": "PSS:C"}
        async with record.running_monitors(plant, enclosures=both):
            await until(permits_are(record, "Permitted"))
            plant.simulate_disconnect("PSS:C")
            await until(lambda: equal(record.permits("Hutch C"), ["Permitted", "Unknown"]))
            assert await record.permits() == ["Permitted"]

    async def test_the_sources_time_is_kept_beside_the_services_own(self, record: MemoryRecord) -> None:
        sampled = datetime(2020, 1, 1, tzinfo=UTC)
        plant = Simulator()
        plant.set_reading(PERMIT, Reading(value=1, sampled_at=sampled))
        began = clock()
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
            id = await record.enclosure()
            assert id
            event = (await record.events("Enclosure", id))[-1]
            assert datetime.fromisoformat(orjson.loads(event.payload)["observed_at"]) == sampled
            assert began <= event.occurred_at <= clock()
            assert (event.principal_id, event.command_name) == (monitor_id("EnclosureMonitor"), "ObserveEnclosureStatus")


class TestContact:
    async def test_it_is_refreshed_while_nothing_changes(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, replace(QUICK, refresh=0.05)):
            await until(permits_are(record, "Permitted"))
            first = await record.contact()
            await until(lambda: contacted_since(record, first))
            assert await record.permits() == ["Permitted"]

    async def test_repeats_are_frequent_enough_for_a_short_time_to_live(self) -> None:
        assert QUICK.refreshing_within(timedelta(seconds=6)).refresh == 2
        assert QUICK.refreshing_within(timedelta(seconds=120)).refresh == 30

    async def test_a_lost_signal_is_not_refreshed(self, record: MemoryRecord, plant: Simulator) -> None:
        plant.set_reading("PSS:C", good(1))
        both = {HUTCH: PERMIT, "Hutch C": "PSS:C"}
        async with record.running_monitors(plant, replace(QUICK, refresh=0.02), enclosures=both):
            await until(permits_are(record, "Permitted"))
            plant.simulate_disconnect(PERMIT)
            await until(permits_are(record, "Permitted", "Unknown"))
            contact = await record.contact()
            for _ in range(3):
                await until(lambda seen=await record.contact("Hutch C"): contacted_since(record, seen, "Hutch C"))
            assert await record.contact() == contact


class TestStarting:
    async def test_an_enclosure_without_a_reading_is_unknown_after_the_wait(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
        await record.observe(await record.enclosure(), "Permitted")
        silent = Simulator()
        silent.simulate_connect(PERMIT)
        async with record.running_monitors(silent):
            assert await record.permit() == "Permitted"
            await until(lambda: record.settled == {HUTCH})
            assert (await record.observations())[-1][:2] == ("Unknown", "No reading came since the monitor started.")

    async def test_a_first_reading_settles_at_once(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, replace(QUICK, first_reading=60)):
            await until(lambda: record.settled == {HUTCH})
            assert await record.permits() == ["Permitted"]

    async def test_a_reading_that_comes_within_the_wait_is_waited_for(self, record: MemoryRecord) -> None:
        silent = Simulator()
        silent.simulate_connect(PERMIT)
        async with record.running_monitors(silent, replace(QUICK, first_reading=60)):
            await until(lambda: silent.subscriptions(PERMIT))
            assert not record.settled
            silent.set_reading(PERMIT, good(0))
            await until(lambda: record.settled == {HUTCH})
            assert await record.permits() == ["NotPermitted"]


class TestRegistration:
    async def test_a_missing_enclosure_is_registered_by_the_monitor(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant):
            await until(record.enclosure)
            id = await record.enclosure()
            assert id
            registered = (await record.events("Enclosure", id))[0]
            assert registered.principal_id == monitor_id("EnclosureMonitor")
            assert orjson.loads(registered.payload)["facility_code"] == "facility"

    async def test_a_live_one_is_used_again(self, record: MemoryRecord, plant: Simulator) -> None:
        id = await record.do(RegisterEnclosure(name=HUTCH, facility_code="facility"))
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
        assert await record.enclosure() == id

    async def test_a_decommissioned_one_is_registered_afresh(self, record: MemoryRecord, plant: Simulator) -> None:
        id = await record.do(RegisterEnclosure(name=HUTCH, facility_code="facility"))
        await record.do(DecommissionEnclosure(reason="rebuilt"), id)
        async with record.running_monitors(plant):
            await until(permits_are(record, "Permitted"))
        assert await record.enclosure() != id

    async def test_decommissioning_under_the_monitor_ends_nothing_else(self, record: MemoryRecord, plant: Simulator) -> None:
        plant.set_reading("PSS:C", good(1))
        both = {HUTCH: PERMIT, "Hutch C": "PSS:C"}
        async with record.running_monitors(plant, enclosures=both):
            await until(permits_are(record, "Permitted"))
            id = await record.enclosure()
            assert id
            await record.do(DecommissionEnclosure(reason="rebuilt"), id)
            plant.set_reading(PERMIT, good(0))
            plant.set_reading("PSS:C", good(0))
            await until(lambda: equal(record.permits("Hutch C"), ["Permitted", "NotPermitted"]))
            assert [event.event_type for event in await record.events("Enclosure", id)][-1] == "EnclosureDecommissioned"


class TestObservers:
    """What an observer may do to the monitor, whatever it observes by."""

    async def test_unknown_codes_and_statuses_are_skipped(self, record: MemoryRecord) -> None:
        async with scripted_monitor(record) as observer:
            with capture_logs() as lines:
                observer.say("Permitted", code="Hutch Z")
                observer.say("Bypassed")
                observer.say("Permitted")
                await until(permits_are(record, "Permitted"))
            skipped = [line for line in lines if line["event"] == "observation_skipped"]
            assert [(line["code"], line["observed_status"]) for line in skipped] == [
                ("Hutch Z", "Permitted"),
                (HUTCH, "Bypassed"),
            ]
            assert await record.enclosure("Hutch Z") is None

    @pytest.mark.parametrize(
        "death", [ControlNotConnectedError("gone"), ControlNotConnectedError("x\x00" * 500), RuntimeError("bug"), None]
    )
    async def test_an_observer_that_dies_leaves_unknown_and_is_asked_again(
        self, record: MemoryRecord, death: Exception | None
    ) -> None:
        async with scripted_monitor(record) as observer:
            observer.say("Permitted")
            await until(permits_are(record, "Permitted"))
            observer.script.put_nowait(death)
            await until(permits_are(record, "Permitted", "Unknown"))
            observer.say("NotPermitted")
            await until(permits_are(record, "Permitted", "Unknown", "NotPermitted"))
            assert observer.subscribed == 2

    async def test_an_observation_that_cannot_be_recorded_does_not_stop_the_loop(self, record: MemoryRecord) -> None:
        async with scripted_monitor(record) as observer:
            observer.say("Permitted")
            await until(permits_are(record, "Permitted"))
            impossible = SignalObservation(
                code=HUTCH, observed_status="NotPermitted", reason="r" * 501, source_kind="Script", source_id="test"
            )
            with capture_logs() as lines:
                observer.script.put_nowait(impossible)
                await until(lambda: any(line["event"] == "observation_refused" for line in lines))
            observer.say("NotPermitted")
            await until(permits_are(record, "Permitted", "NotPermitted"))
            assert observer.subscribed == 1

    async def test_a_refusal_that_is_repeated_is_logged_once_and_counted(self, record: MemoryRecord) -> None:
        hutch = await record.do(RegisterEnclosure(name="Hutch R", facility_code="facility"))
        assert hutch
        account = MonitorAccount("EnclosureMonitor", record.service, record.store, new_id)
        source: Any = {"code": "Hutch R", "source_kind": "Script", "source_id": "test"}
        with capture_logs() as lines:
            for reason in (*["r" * 501] * 3, "searched"):
                seen = SignalObservation(observed_status="Permitted", reason=reason, **source)
                await account.report(ObserveEnclosureStatus, hutch, seen)
        told = [(line["event"], line.get("repeats")) for line in lines if line["event"].startswith("observation_")]
        assert told == [("observation_refused", None), ("observation_repeated", 2)]

    async def test_a_permit_whose_recording_was_not_answered_is_not_forgotten(self, record: MemoryRecord) -> None:
        line = LossyService(record.service)
        account = MonitorAccount("EnclosureMonitor", cast(Service, line), record.store, new_id)
        async with scripted_monitor(record, account) as observer:
            observer.say("NotPermitted")
            await until(permits_are(record, "NotPermitted"))
            observer.say("Unknown")
            await until(permits_are(record, "NotPermitted", "Unknown"))
            line.broken = True
            observer.say("Permitted")
            observer.script.put_nowait(None)
            await until(permits_are(record, "NotPermitted", "Unknown", "Permitted", "Unknown"))

    async def test_nothing_is_started_for_an_empty_scope(self, record: MemoryRecord) -> None:
        async def report_settled(name: str) -> None:
            raise AssertionError("there is nothing to settle")

        observer = ScriptedObserver()
        before = asyncio.all_tasks()
        await EnclosureMonitor(record.account(), observer, "facility", (), report_settled, QUICK).run()
        await SupplyMonitor(record.account("SupplyMonitor"), observer, "facility", (), QUICK).run()
        assert (asyncio.all_tasks(), observer.subscribed) == (before, 0)


class TestAuthorization:
    async def test_the_seeded_policies_are_enough(self, plant: Simulator) -> None:
        record = await seeded_memory(enforced=True)
        plant.set_reading(LEVEL, good(1))
        async with record.running_monitors(plant, supplies=[NITROGEN]):
            await until(permits_are(record, "Permitted"))
            await until(supply_events_are(record, "SupplyMarkedUnavailable"))
            await until(lambda: record.verdict_count("ObserveEnclosureStatus", "Allow"))
            await until(lambda: record.verdict_count("ObserveSupplyStatus", "Allow"))

    async def test_a_revoked_grant_is_felt_and_survived(self, plant: Simulator) -> None:
        record = await seeded_memory(enforced=True)
        async with record.running_monitors(plant, replace(QUICK, refresh=0.05)):
            await until(permits_are(record, "Permitted"))
            await record.do(
                RevokePolicyGrant(permitted_principal_id=monitor_id("EnclosureMonitor"), reason="audit"),
                record.policy_of(monitor_id("EnclosureMonitor")),
            )
            with capture_logs() as lines:
                plant.set_reading(PERMIT, good(0))
                await until(lambda: record.verdict_count("ObserveEnclosureStatus", "Deny"))
                refused = [line for line in lines if line["event"] == "observation_refused"]
                assert {(line["code"], line["reason"]) for line in refused} == {
                    ("UnauthorizedError", "principal_not_permitted")
                }
            assert await record.permits() == ["Permitted"]
            again = DefinePolicy(
                name="EnclosureMonitor, again",
                conduit_id=SYSTEM_CONDUIT,
                surface_id=NIL,
                permitted_principal_ids=[monitor_id("EnclosureMonitor")],
                permitted_commands=["ObserveEnclosureStatus"],
            )
            await record.do(again)
            await until(permits_are(record, "Permitted", "NotPermitted"))


class TestSupplies:
    async def test_it_is_registered_and_left_unknown(self, record: MemoryRecord) -> None:
        async with record.running_monitors(Simulator({LEVEL: 22}), **NITROGEN_ONLY):
            await until(supply_events_are(record))
            id = await record.supply()
            assert id
            (registered,) = await record.events("Supply", id)
            assert registered.principal_id == monitor_id("SupplyMonitor")

    async def test_a_failing_supply_is_recorded_and_what_follows(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            plant.set_reading(LEVEL, good(10))
            await until(supply_events_are(record, "SupplyDegraded"))
            plant.set_reading(LEVEL, good(3))
            await until(supply_events_are(record, "SupplyDegraded", "SupplyMarkedUnavailable"))
            plant.set_reading(LEVEL, good(60))
            await until(supply_events_are(record, "SupplyDegraded", "SupplyMarkedUnavailable", "SupplyMarkedRecovering"))
            id = await record.supply()
            assert id
            last = orjson.loads((await record.events("Supply", id))[-1].payload)
            assert (last["trigger"], last["monitor_ref"], last["reason"]) == (
                "Monitor",
                f"ProcessVariable:{LEVEL}",
                f"{LEVEL} reads 60",
            )

    @pytest.mark.parametrize("prepared", [[], [MarkSupplyAvailable(reason="walkdown")]])
    async def test_recovering_is_recorded_only_of_an_unavailable_supply(
        self, record: MemoryRecord, plant: Simulator, prepared: list[Any]
    ) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(supply_events_are(record))
            id = await record.supply()
            for command in prepared:
                await record.do(command, id)
            with capture_logs() as lines:
                plant.set_reading(LEVEL, good(22))
                plant.set_reading(LEVEL, good(80))
                plant.set_reading(LEVEL, good(10))
                await until(supply_events_are(record, *(["SupplyMarkedAvailable"] if prepared else []), "SupplyDegraded"))
            assert not [line for line in lines if line["log_level"] != "info"], "a clear signal is no trouble"

    async def test_a_reading_that_cannot_be_trusted_changes_nothing(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            for reading in (bad(1), good("EMPTY"), good(float("nan")), good(10)):
                plant.set_reading(LEVEL, reading)
            await until(supply_events_are(record, "SupplyDegraded"))

    @pytest.mark.parametrize("level", [22, 80])
    @pytest.mark.parametrize("prepared", [[], [MarkSupplyAvailable(reason="walkdown")]])
    async def test_one_that_reads_well_is_confirmed_again_and_again_and_nothing_is_recorded(
        self, record: MemoryRecord, level: float, prepared: list[Any]
    ) -> None:
        async with record.running_monitors(Simulator({LEVEL: level}), OFTEN, **NITROGEN_ONLY):
            await until(record.supply)
            for command in prepared:
                await record.do(command, await record.supply())
            for _ in range(3):
                await until_confirmed(record)
            assert await record.supply_events() == ["SupplyRegistered", *(["SupplyMarkedAvailable"] if prepared else [])]

    async def test_a_signal_that_never_rests_is_confirmed_too(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, replace(QUICK, refresh=0.2), **NITROGEN_ONLY):
            await until_confirmed(record)
            before, levels = await record.supply_contact(), itertools.cycle([80, 81, 82])

            async def is_confirmed() -> bool:
                plant.set_reading(LEVEL, good(next(levels)))
                return bool(await record.supply_contact() > before)

            await until(is_confirmed)
            assert await record.supply_events() == ["SupplyRegistered"]

    @pytest.mark.parametrize("reading", [None, bad(22), bad(80), good("EMPTY"), good(float("nan"))])
    async def test_one_that_cannot_be_read_is_not_confirmed(
        self, record: MemoryRecord, plant: Simulator, reading: Reading | None
    ) -> None:
        helium = {**NITROGEN, "name": "Helium", "signal": "HE:LEVEL"}
        plant.set_reading("HE:LEVEL", good(22))
        async with record.running_monitors(plant, OFTEN, enclosures={}, supplies=[NITROGEN, helium]):
            await until_confirmed(record)
            if reading is None:
                plant.simulate_disconnect(LEVEL)
            else:
                plant.set_reading(LEVEL, reading)
            await until_confirmed(record, name="Helium")
            contact = await record.supply_contact()
            for _ in range(3):
                await until_confirmed(record, name="Helium")
            assert await record.supply_contact() == contact
            plant.set_reading(LEVEL, good(22))
            await until_confirmed(record)

    async def test_a_lost_signal_changes_nothing_and_is_followed_again(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            plant.set_reading(LEVEL, good(10))
            await until(supply_events_are(record, "SupplyDegraded"))
            for lose in (plant.simulate_disconnect, plant.simulate_end):
                lose(LEVEL)
                await until(lambda: not plant.subscriptions(LEVEL))
                plant.simulate_connect(LEVEL)
                await until(lambda: plant.subscriptions(LEVEL))
            assert await record.supply_events() == ["SupplyRegistered", "SupplyDegraded"]
            plant.set_reading(LEVEL, good(3))
            await until(supply_events_are(record, "SupplyDegraded", "SupplyMarkedUnavailable"))

    async def test_a_refused_observation_does_not_stop_the_loop(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            with capture_logs() as lines:
                plant.set_reading(LEVEL, good(3))
                await until(supply_events_are(record, "SupplyMarkedUnavailable"))
                plant.set_reading(LEVEL, good(10))
                await until(lambda: any(line["event"] == "observation_refused" for line in lines))
                plant.set_reading(LEVEL, good(60))
                await until(supply_events_are(record, "SupplyMarkedUnavailable", "SupplyMarkedRecovering"))
            assert [line["code"] for line in lines if line["event"] == "observation_refused"] == ["SupplyCannotDegradeError"]

    async def test_a_signal_that_repeats_itself_is_not_reported_each_time(self) -> None:
        record = await seeded_memory(enforced=True)
        plant = Simulator({LEVEL: 3.0})
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(supply_events_are(record, "SupplyMarkedUnavailable"))
            for level in range(200):
                plant.set_reading(LEVEL, good(level / 100))
            plant.set_reading(LEVEL, good(60))
            await until(supply_events_are(record, "SupplyMarkedUnavailable", "SupplyMarkedRecovering"))
            assert record.verdict_count("ObserveSupplyStatus", "Allow") == 2

    async def test_a_persons_word_stands_until_the_signal_speaks_again(self, record: MemoryRecord, plant: Simulator) -> None:
        async with record.running_monitors(plant, OFTEN, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            plant.set_reading(LEVEL, good(10))
            await until(supply_events_are(record, "SupplyDegraded"))
            await record.do(RestoreSupply(reason="refilled"), await record.supply())
            for _ in range(3):
                await until_confirmed(record)
            assert (await record.supply_events())[1:] == ["SupplyDegraded", "SupplyRestored"], "the signal said no more"
            plant.set_reading(LEVEL, good(11))
            await until(supply_events_are(record, "SupplyDegraded", "SupplyRestored", "SupplyDegraded"))

    async def test_a_worse_reading_right_after_a_report_is_reported_in_its_turn(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        """The signal says nothing more: what it said last must not be lost because the same was reported just before."""
        async with record.running_monitors(plant, replace(QUICK, refresh=0.5), **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
            plant.set_reading(LEVEL, good(10))
            await until(supply_events_are(record, "SupplyDegraded"))
            await record.do(RestoreSupply(reason="refilled"), await record.supply())
            plant.set_reading(LEVEL, good(9))
            await until(supply_events_are(record, "SupplyDegraded", "SupplyRestored", "SupplyDegraded"))

    async def test_a_deregistered_supply_is_registered_afresh_at_the_next_start(
        self, record: MemoryRecord, plant: Simulator
    ) -> None:
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(record.supply)
        id = await record.supply()
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(lambda: plant.subscriptions(LEVEL))
        assert await record.supply() == id
        await record.do(DeregisterSupply(reason="removed"), id)
        async with record.running_monitors(plant, **NITROGEN_ONLY):
            await until(record.supply)
        assert await record.supply() != id


class TestStalePermits:
    async def test_what_a_silent_bridge_left_permitted_becomes_unknown(self, record: MemoryRecord) -> None:
        await record.add_bridged_enclosure("Vault", age=121)
        await record.sweep()
        assert await record.permits("Vault") == ["Permitted", "Unknown"]
        assert (await record.observations("Vault"))[-1] == (
            "Unknown",
            "The permit was observed last 121 s ago.",
            "Monitor:ObservationAge",
        )

    async def test_the_age_of_the_last_reading_goes_on(self, record: MemoryRecord) -> None:
        await record.add_bridged_enclosure("Vault", age=121)
        contact = await record.contact("Vault")
        await record.sweep()
        assert await record.permit("Vault") == "Unknown"
        assert await record.contact("Vault") == contact, "nobody has read anything since"

    async def test_a_fresh_observation_stays(self, record: MemoryRecord) -> None:
        await record.add_bridged_enclosure("Vault", age=100)
        await record.sweep()
        assert await record.permits("Vault") == ["Permitted"]

    async def test_an_observation_from_the_future_is_no_better_than_an_old_one(self, record: MemoryRecord) -> None:
        await record.add_bridged_enclosure("Vault", age=-200)
        await record.sweep()
        assert await record.permit("Vault") == "Unknown"

    async def test_what_is_unknown_or_decommissioned_is_left_alone(self, record: MemoryRecord) -> None:
        unknown = await record.add_bridged_enclosure("Vault", age=1000, status="Unknown")
        gone = await record.add_bridged_enclosure("Cabinet", age=1000)
        await record.do(DecommissionEnclosure(reason="rebuilt"), gone)
        before = [len(await record.events("Enclosure", id)) for id in (unknown, gone)]
        await record.sweep()
        assert [len(await record.events("Enclosure", id)) for id in (unknown, gone)] == before

    async def test_every_page_is_swept(self, record: MemoryRecord, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("baton.application.monitoring.plant_monitors.PAGE", 2)
        names = [f"Cabinet {number}" for number in range(5)]
        for name in names:
            await record.add_bridged_enclosure(name, age=1000)
        await record.sweep()
        assert [await record.permit(name) for name in names] == ["Unknown"] * 5


class SlowAccount:
    """A service account whose every report takes a turn that the test gives it."""

    def __init__(self, turns: int) -> None:
        self.asked: list[str] = []
        self.turns = asyncio.Semaphore(turns)

    async def ensure_registered(self, *arguments: Any) -> UUID:
        return new_id()

    async def report(
        self, form: Any, on: UUID, observation: SignalObservation, needless: Any, **further: Any
    ) -> ReportOutcome:
        self.asked.append(observation.observed_status)
        await self.turns.acquire()
        return ReportOutcome.RECORDED


@asynccontextmanager
async def monitor_of_slow_store(plant: Simulator, turns: int = 0, refresh: float = 30) -> AsyncIterator[SlowAccount]:
    """The monitor of the hutch, behind a store that is slower than its signal."""

    async def report_settled(name: str) -> None:
        assert name == HUTCH

    account, observer = SlowAccount(turns), ControlObserver(plant, permit_signals({HUTCH: PERMIT}))
    intervals = replace(QUICK, refresh=refresh, first_reading=60)
    monitor = EnclosureMonitor(cast(MonitorAccount, account), observer, "facility", [HUTCH], report_settled, intervals)
    task = asyncio.create_task(monitor.run())
    try:
        yield account
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TestASlowStore:
    """While one report is on its way, a signal may say many things: what is reported next is its next change."""

    async def test_a_permit_that_is_withdrawn_waits_for_no_older_reading(self, plant: Simulator) -> None:
        async with monitor_of_slow_store(plant) as account:
            await until(lambda: account.asked == ["Permitted"])
            for _ in range(100):
                plant.set_reading(PERMIT, good(1))
                await asyncio.sleep(0)
            plant.set_reading(PERMIT, good(0))
            account.turns.release()
            await until(lambda: len(account.asked) > 1)
            assert account.asked == ["Permitted", "NotPermitted"]

    async def test_a_permit_that_was_withdrawn_for_a_moment_is_reported_so(self, plant: Simulator) -> None:
        async with monitor_of_slow_store(plant) as account:
            await until(lambda: account.asked == ["Permitted"])
            for value in (0, 1):
                plant.set_reading(PERMIT, good(value))
            for reports in (2, 3):
                account.turns.release()
                await until(lambda reports=reports: len(account.asked) == reports)
            assert account.asked == ["Permitted", "NotPermitted", "Permitted"]

    @pytest.mark.parametrize("lose", [Simulator.simulate_disconnect, Simulator.simulate_end])
    async def test_a_lost_signal_is_reported_after_what_it_said_last(
        self, plant: Simulator, lose: Callable[[Simulator, str], None]
    ) -> None:
        async with monitor_of_slow_store(plant) as account:
            await until(lambda: account.asked == ["Permitted"])
            plant.set_reading(PERMIT, good(1))
            plant.set_reading(PERMIT, good(0))
            lose(plant, PERMIT)
            plant.simulate_connect(PERMIT)
            account.turns.release()
            await until(lambda: len(account.asked) == 2)
            account.turns.release()
            await until(lambda: len(account.asked) == 3)
            assert account.asked == ["Permitted", "NotPermitted", "Unknown"]

    async def test_a_permit_that_repeats_itself_is_reported_once_in_the_interval(self, plant: Simulator) -> None:
        async with monitor_of_slow_store(plant, turns=100) as account:
            await until(lambda: account.asked == ["Permitted"])
            for _ in range(50):
                plant.set_reading(PERMIT, good(1))
                await asyncio.sleep(0)
            plant.set_reading(PERMIT, good(0))
            await until(lambda: "NotPermitted" in account.asked)
            assert account.asked == ["Permitted", "NotPermitted"]

    async def test_what_was_passed_over_is_reported_when_the_interval_is_over(self, plant: Simulator) -> None:
        async with monitor_of_slow_store(plant, turns=100, refresh=0.2) as account:
            await until(lambda: account.asked == ["Permitted"])
            for _ in range(50):
                plant.set_reading(PERMIT, good(1))
                await asyncio.sleep(0)
            assert account.asked == ["Permitted"]
            await until(lambda: account.asked == ["Permitted", "Permitted"])


class TestRepeating:
    async def test_what_is_not_understood_displaces_nothing(self) -> None:
        observer = ScriptedObserver()
        observer.say("NotPermitted")
        observer.say("Bypassed")
        observer.script.put_nowait(None)
        async with aclosing(follow_signal(observer, HUTCH, EnclosurePermitStatus, ReportPace(QUICK))) as observed:
            assert [status async for status, _ in observed] == ["NotPermitted"]

    async def test_the_latest_comes_again_when_nothing_else_does(self) -> None:
        items: asyncio.Queue[int] = asyncio.Queue()

        async def stream() -> AsyncGenerator[int, None]:
            while (item := await items.get()) >= 0:
                yield item

        items.put_nowait(1)
        seen: list[int] = []
        async with aclosing(repeat_latest(stream(), lambda: 0.01, operator.eq)) as repeating:
            async for item in repeating:
                seen.append(item)
                if len(seen) == 3:
                    items.put_nowait(2)
                if seen[-1] == 2:
                    items.put_nowait(-1)
        assert seen[:3] == [1, 1, 1]
        assert seen[-1] == 2

    async def test_a_slow_reader_gets_the_newest_and_then_the_end(self) -> None:
        async def stream() -> AsyncGenerator[int, None]:
            for item in range(5):
                yield item

        async with aclosing(repeat_latest(stream(), lambda: None, lambda *_: True)) as repeating:
            assert [item async for item in repeating] == [4]

    async def test_a_slow_reader_gets_every_change(self) -> None:
        async def stream() -> AsyncGenerator[tuple[str, int], None]:
            for item in enumerate("PPPNNP"):
                yield item[1], item[0]

        async with aclosing(repeat_latest(stream(), lambda: None, lambda said, item: said[0] == item[0])) as repeating:
            assert [item async for item in repeating] == [("P", 2), ("N", 4), ("P", 5)]

    async def test_nothing_is_repeated_before_the_first_item(self) -> None:
        pauses: list[float] = []

        async def stream() -> AsyncGenerator[int, None]:
            await asyncio.sleep(0.05)
            yield 1

        def pause() -> float:
            pauses.append(0)
            return 0

        async with aclosing(repeat_latest(stream(), pause, operator.eq)) as repeating:
            assert await anext(repeating) == 1
        assert not pauses

    @for_each("failure", [ControlNotConnectedError("gone"), TimeoutError("late")])
    async def test_a_failure_comes_through_after_the_last_item(self, failure: Exception) -> None:
        async def stream() -> AsyncGenerator[int, None]:
            yield 1
            raise failure

        async with aclosing(repeat_latest(stream(), lambda: 10, operator.eq)) as repeating:
            assert await anext(repeating) == 1
            with pytest.raises(type(failure)):
                await anext(repeating)
