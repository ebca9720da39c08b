"""How values look to people: reasons, durations and what is named by the address of a signal."""

from typing import Any
from zoneinfo import ZoneInfo

from baton.console.actions import thing_label
from baton.console.display import Display, duration_text, reason_text, words_of
from baton.console.pages.waiting import SENTENCES, SHARED
from baton.domain.conduct.messages import reason_of
from baton.domain.contexts import REGISTRY
from baton.domain.step.results import Failure
from tests.support.tables import for_each

DISPLAY = Display(ZoneInfo("UTC"))
REFUSED: dict[str, Any] = {"target": "bl7:shutter", "error_class": "ControlWriteRejectedError", "message": "It refuses."}
STEP = reason_of(Failure(**REFUSED, source_kind="setpoint", step_index=0))
OTHER = reason_of(Failure(**REFUSED, source_kind="lifecycle"))


@for_each(
    ("reason", "shown"),
    [
        (STEP, "step 1, bl7:shutter failed: It refuses."),
        (f"phase Scan: {STEP}", "phase Scan: step 1, bl7:shutter failed: It refuses."),
        (OTHER, "It refuses."),
        ("Scan failed: ControlWriteRejectedError: It refuses.", "Scan failed: It refuses."),
        ("phase Scan: the camera is off", "phase Scan: the camera is off"),
        ("The pump failed: Bearing: worn out", "The pump failed: Bearing: worn out"),
        ("Somebody must check[0] this", "Somebody must check[0] this"),
    ],
)
def test_a_reason_counts_steps_from_one_and_names_no_class(reason: str, shown: str) -> None:
    assert reason_text(reason) == shown
    assert DISPLAY.value(reason, "last_status_reason") == shown
    assert DISPLAY.value(reason, "choice") == reason


@for_each(("seconds", "shown"), [(0.0, "< 1 ms"), (0.0009, "< 1 ms"), (0.001, "1 ms"), (0.5, "500 ms"), (61, "1 min 1 s")])
def test_no_duration_is_shown_as_nothing(seconds: float, shown: str) -> None:
    assert duration_text(seconds) == shown


def test_an_account_of_an_agent_is_shown_on_the_clock_of_the_facility_and_in_plain_words() -> None:
    account = "It began at 2026-11-18T06:11:00.885710Z and ended with ProcedureAborted: NominalCompletion of PandaBox."
    berlin = Display(ZoneInfo("Europe/Berlin"))
    assert berlin.narrative(account) == (
        "It began at 07:11:00 and ended with procedure aborted: nominal completion of PandaBox."
    )


def test_the_address_of_a_signal_is_shown_as_it_is() -> None:
    assert "<dt>bl7:rotary</dt>" in DISPLAY.value({"bl7:rotary": {"low": -360}})


def test_pages_say_copy_check_and_sample_and_leave_subjects_of_tokens_alone() -> None:
    shown = [
        words_of(one) for one in ("RegisterDistribution", "attest_distributions", "mount_subject", "bind_actor_subject")
    ]
    assert shown == ["Register copy", "Check copies", "Mount sample", "Bind actor subject"]


def test_what_has_no_name_is_told_by_what_it_is_of() -> None:
    kinds, id = REGISTRY.aggregates, "01a1f1e4-94a9-7bbb-ab52-238acc2e25f0"
    assert thing_label(kinds["Proposal"], {"id": id, "command_name": "DefineZone"}) == "Define zone"
    assert thing_label(kinds["Distribution"], {"uri": "file:///a.h5", "dataset": {"name": "Scan"}}) == "file:///a.h5 of Scan"
    assert thing_label(kinds["Decision"], {"choice": "Hold"}) == "Hold"
    assert thing_label(kinds["Attestation"], {"id": id}).startswith("Check ")


def test_every_kind_that_waits_has_a_sentence() -> None:
    assert set(SENTENCES) == set(SHARED)
