"""What the witness rests on, against the installed Bluesky and ophyd-async; where one of these fails, a rule must change."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import clean_environment

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Everything that was played, in one process."""
    pytest.importorskip("bluesky", reason="Bluesky is not installed, so nothing can be asked of it.")
    directory: Path = tmp_path_factory.mktemp("facts")
    program = [sys.executable, "-m", "tests.support.witness.fact_finding", str(directory)]
    played = subprocess.run(program, capture_output=True, text=True, timeout=120, env=clean_environment(), check=False)
    assert played.returncode == 0, played.stderr[-3000:]
    return dict(json.loads(played.stdout))


def test_f1_soft_signals_have_a_reading_and_take_labels_and_numbers_only(facts: dict[str, Any]) -> None:
    assert facts["signals"] == {
        "reading": ["alarm_severity", "timestamp", "value"],
        "enum_by_number": "ValueError",
        "enum_by_label": None,
        "text_for_number": "ValueError",
        "first_value": [2.5],
    }


def test_f2_a_scan_emits_its_start_descriptor_events_and_stop(facts: dict[str, Any]) -> None:
    kinds = [name for name, _ in facts["scan"]]
    assert kinds == ["start", "descriptor", *["event"] * 5, "stop"]
    start, descriptor = facts["scan"][0][1], facts["scan"][1][1]
    assert start["plan_args"]["args"] == ['SimMotor(name="stage_x")', -1, 1]
    assert (start["num_points"], start["plan_name"], {"bluesky", "ophyd_async"} & start["versions"].keys()) == (
        5,
        "scan",
        {"bluesky", "ophyd_async"},
    )
    assert {key: one["source"] for key, one in descriptor["data_keys"].items()}["stage_x"].startswith("soft://")
    assert facts["subscribing"]["threads"] == ["bluesky-run-engine"]


def test_f2_a_detector_with_a_file_has_two_resources_of_one_address(facts: dict[str, Any]) -> None:
    resources = [document for name, document in facts["frames"] if name == "stream_resource"]
    assert [one["data_key"] for one in resources] == ["blob", "blob-sum"]
    assert len({one["uri"] for one in resources}) == 1
    assert {"uri", "mimetype", "parameters", "run_start"} <= resources[0].keys()
    assert not {"checksum", "size"} & resources[0].keys()
    datum = [document for name, document in facts["frames"] if name == "stream_datum"]
    assert {one["uid"].rpartition("/")[0] for one in datum} == {one["uid"] for one in resources}
    assert max(one["indices"]["stop"] for one in datum) == 2


def test_f3_a_callback_that_raises_ends_the_scan_and_one_that_waits_delays_it(facts: dict[str, Any]) -> None:
    callbacks = facts["callbacks"]
    assert callbacks["raising_stop"] == {"exit_status": "fail", "reason": "the callback failed"}
    assert callbacks["delay_of_six_documents"] > 0.25


def test_f4_a_stopped_scan_says_success_and_no_document_gives_a_persons_reason(facts: dict[str, Any]) -> None:
    endings = facts["endings"]
    assert endings["stop"] == {"exit_status": "success", "reason": ""}
    assert endings["abort"] == endings["halt"] == {"exit_status": "abort", "reason": ""}
    assert "stopping" in endings["stop_states"]
    assert "stopping" not in endings["abort_states"]


def test_f4_pauses_are_in_no_document_unless_the_engine_records_them(facts: dict[str, Any]) -> None:
    endings = facts["endings"]
    assert endings["kinds_with_pause"].keys() == {"start", "descriptor", "event", "stop"}
    assert endings["stop_states"][:3] == ["running", "pausing", "paused"]
    assert endings["interruptions"] == ["pause", "resume"]


def test_f4_a_pause_without_a_checkpoint_ends_the_scan(facts: dict[str, Any]) -> None:
    assert facts["endings"]["pause_without_checkpoint_stop"] in ("abort", "fail")


def test_f4_a_suspension_continues_by_itself_and_without_a_checkpoint_ends_the_scan(facts: dict[str, Any]) -> None:
    """Rule 40 rests on it: `hold="now"` suspends behind a checkpoint only."""
    endings = facts["endings"]
    assert (endings["suspended"], "suspending" in endings["suspended_states"]) == ("success", True)
    assert endings["suspended_without_checkpoint"] in ("abort", "fail")


def test_f4_suspenders_take_no_signal_of_ophyd_async(facts: dict[str, Any]) -> None:
    """Rule 40 rests on it: the classes of `bluesky.suspenders` are not used."""
    assert facts["endings"]["suspender_of_a_signal"] == "TypeError"


def test_f4_a_plan_that_is_refused_before_its_run_leaves_no_document(facts: dict[str, Any]) -> None:
    assert facts["endings"]["refused_before"] == ["PermissionError", {}]


def test_f4_interleaved_runs_have_uids_of_their_own(facts: dict[str, Any]) -> None:
    assert facts["endings"]["interleaved"] == 2
    order = facts["endings"]["interleaved_order"]
    assert (order[:2], order[-2:]) == (["start", "start"], ["stop", "stop"])


def test_f8_a_rewound_event_comes_again_with_its_number_and_another_time(facts: dict[str, Any]) -> None:
    assert facts["rewinding"] == {"seq_nums": [1, 1, 2], "uids": 3, "times": 3, "announced": 2}
