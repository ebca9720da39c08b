"""From a reading to a status: what counts as a permit, and what a supply's rules make of its signal."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.application.control import Quality, Reading
from baton.application.monitoring.observations import (
    ControlObserver,
    SignalObservation,
    permit_signals,
    permit_status,
    supply_signals,
    supply_status,
)
from baton.application.plant import MonitoredSupply, ReadingRule
from baton.infrastructure.control.simulator import Simulator
from tests.support.tables import for_each

LEVEL = (
    ReadingRule(status="Unavailable", below=5),
    ReadingRule(status="Degraded", below=20),
    ReadingRule(status="Recovering", above=25),
)
VALVE = (ReadingRule(status="Unavailable", values=("closed", 0)), ReadingRule(status="Recovering", values=("open", 1)))
SAMPLED = datetime(2026, 10, 6, 7, 59, tzinfo=UTC)
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers()), st.binary())


class TestPermits:
    @for_each("value", [1, 1.0, True, "1", "ON", "on", "TRUE", "True", "YES", "yes", "  On\n"])
    def test_a_plain_yes_is_permitted(self, value: Any) -> None:
        assert permit_status(Reading(value=value)) == "Permitted"

    @for_each("value", [0, 0.0, -0.0, False, "0", "OFF", "off", "FALSE", "NO", " no "])
    def test_a_plain_no_is_not_permitted(self, value: Any) -> None:
        assert permit_status(Reading(value=value)) == "NotPermitted"

    @for_each(
        "value",
        [
            2,
            -1,
            0.5,
            1.0000001,
            float("nan"),
            float("inf"),
            "",
            "1.0",
            "PERMITTED",
            "ON OFF",
            "O N",
            None,
            b"1",
            [1],
            (1,),
            {},
        ],
    )
    def test_any_other_value_is_unknown(self, value: Any) -> None:
        assert permit_status(Reading(value=value)) == "Unknown"

    @for_each(
        ("quality", "status"), [(Quality.GOOD, "Permitted"), (Quality.UNCERTAIN, "Permitted"), (Quality.BAD, "Unknown")]
    )
    def test_only_bad_quality_makes_a_yes_unknown(self, quality: Quality, status: str) -> None:
        assert permit_status(Reading(value=1, quality=quality)) == status

    @given(values)
    def test_nothing_of_bad_quality_is_ever_permitted(self, value: Any) -> None:
        assert permit_status(Reading(value=value, quality=Quality.BAD)) == "Unknown"

    @given(values)
    def test_permitted_is_only_what_the_table_lists(self, value: Any) -> None:
        if permit_status(Reading(value=value)) == "Permitted":
            assert value == 1 or str(value).strip().upper() in {"1", "ON", "TRUE", "YES"}


class TestSupplies:
    @for_each(
        ("value", "status"),
        [
            (0, "Unavailable"),
            (4.9, "Unavailable"),
            (5, "Degraded"),
            (19.9, "Degraded"),
            (20, "Unknown"),
            (25, "Unknown"),
            (25.1, "Recovering"),
            (float("nan"), None),
            ("4", None),
            (None, None),
            ([1], None),
        ],
    )
    def test_a_number_is_judged_by_the_first_bounds_it_is_within(self, value: Any, status: str | None) -> None:
        assert supply_status(LEVEL, Reading(value=value)) == status

    @for_each(
        ("value", "status"),
        [
            ("CLOSED", "Unavailable"),
            (0, "Unavailable"),
            (False, "Unavailable"),
            (" Open", "Recovering"),
            (1.0, "Recovering"),
            ("MOVING", "Unknown"),
            (float("nan"), None),
            (None, None),
        ],
    )
    def test_a_word_is_judged_by_the_values_that_list_it(self, value: Any, status: str | None) -> None:
        assert supply_status(VALVE, Reading(value=value)) == status

    def test_both_bounds_hold_together(self) -> None:
        rules = (ReadingRule(status="Recovering", above=10, below=90),)
        assert [supply_status(rules, Reading(value=value)) for value in (10, 50, 90)] == ["Unknown", "Recovering", "Unknown"]

    def test_a_value_in_alarm_counts_and_a_bad_one_says_nothing(self) -> None:
        said = [supply_status(LEVEL, Reading(value=1, quality=quality)) for quality in (Quality.UNCERTAIN, Quality.BAD)]
        assert said == ["Unavailable", None]

    @given(values, st.sampled_from(Quality))
    def test_no_reading_ever_reports_a_supply_available(self, value: Any, quality: Quality) -> None:
        statuses = {supply_status(rules, Reading(value=value, quality=quality)) for rules in (LEVEL, VALVE)}
        assert statuses <= {None, "Unknown", "Degraded", "Unavailable", "Recovering"}

    @for_each("status", ["Available", "Unknown", "Decommissioned"])
    def test_a_rule_cannot_name_what_only_a_person_declares(self, status: str) -> None:
        with pytest.raises(ValidationError):
            ReadingRule.model_validate({"status": status, "below": 1})

    @for_each("test", [{}, {"values": ["x"], "below": 1}, {"above": "nan"}])
    def test_a_rule_has_either_values_or_bounds(self, test: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            ReadingRule.model_validate({"status": "Degraded", **test})

    def test_a_facility_code_is_judged_by_the_rule_of_facilities(self) -> None:
        said = {"name": "Nitrogen", "kind": "cryogen", "signal": "LN:LEVEL", "readings": LEVEL}
        assert MonitoredSupply.model_validate({**said, "facility_code": "north-ring"}).facility_code == "north-ring"
        for code in ("North", "", "a" * 33, "ring\n"):
            with pytest.raises(ValidationError, match="is no facility code"):
                MonitoredSupply.model_validate({**said, "facility_code": code})


class TestObservingTheControlSystem:
    async def test_a_permit_reading_becomes_an_observation_with_its_source(self) -> None:
        plant = Simulator()
        plant.set_reading("PSS:B", Reading(value=7, quality=Quality.UNCERTAIN, quality_detail="HIHI", sampled_at=SAMPLED))
        stream = ControlObserver(plant, permit_signals({"Hutch B": "PSS:B"})).observe("Hutch B")
        assert await anext(stream) == SignalObservation(
            code="Hutch B",
            observed_status="Unknown",
            reason="PSS:B reads 7 with quality Uncertain (HIHI)",
            source_kind="ProcessVariable",
            source_id="PSS:B",
            observed_at=SAMPLED,
        )
        await stream.aclose()
        assert plant.subscriptions("PSS:B") == 0

    async def test_a_supply_reads_well_where_no_rule_fits_and_is_not_read_where_none_can_judge(self) -> None:
        plant = Simulator({"LN:LEVEL": 22})
        supply = MonitoredSupply(name="Nitrogen", kind="cryogen", signal="LN:LEVEL", readings=LEVEL)
        stream = ControlObserver(plant, supply_signals([supply])).observe(supply.code)
        observed = [await anext(stream)]
        for reading in (Reading(value=1, quality=Quality.BAD), Reading(value="?"), Reading(value=1)):
            plant.set_reading("LN:LEVEL", reading)
            observed.append(await anext(stream))
        assert [(one.observed_status, one.nothing_read, one.reason) for one in observed] == [
            ("Unknown", False, "LN:LEVEL reads 22"),
            ("Unknown", True, "LN:LEVEL reads 1 with quality Bad"),
            ("Unknown", True, "LN:LEVEL reads ?"),
            ("Unavailable", False, "LN:LEVEL reads 1"),
        ]
        await stream.aclose()

    async def test_a_long_value_is_quoted_in_part(self) -> None:
        plant = Simulator()
        plant.set_reading("PSS:B", Reading(value="x" * 5000, quality=Quality.BAD, quality_detail="y" * 5000))
        observed = await anext(ControlObserver(plant, permit_signals({"Hutch B": "PSS:B"})).observe("Hutch B"))
        assert len(observed.reason) < 500

    async def test_characters_that_cannot_be_stored_are_not_quoted(self) -> None:
        plant = Simulator({"PSS:B": "ON\x00\x00\ud800\n"})
        observed = await anext(ControlObserver(plant, permit_signals({"Hutch B": "PSS:B"})).observe("Hutch B"))
        assert (observed.observed_status, observed.reason) == ("Unknown", "PSS:B reads ON????")
