"""Daily work at the command line, on a real service: runs and procedures are started, shown, steered and followed."""

import json
from pathlib import Path
from uuid import UUID, uuid4

from tests.support.cli.daily_service import CAMERA, PLAN, RECIPE, SUBJECT, UNIT, DailyService
from tests.support.waiting import until


async def start_run(daily: DailyService, name: str) -> str:
    """Start a run, wait until its scan is at the step that waits, and return its id."""
    started = await daily.answer("run", PLAN, "--name", name, "--subject", SUBJECT, "-p", "exposure=0.02")
    await daily.pauses.wait_until_reached()
    return str(started["id"])


async def test_a_run_is_started_shown_held_resumed_and_followed_by_its_name(
    daily_service: DailyService, tmp_path: Path
) -> None:
    run_id = await start_run(daily_service, "Load step 1")

    live = await daily_service.answer("ps")
    assert [(one["kind"], one["name"], one["status"]) for one in live] == [
        ("run", "Load step 1", "Running"),
        ("procedure", RECIPE, "Running"),
    ]
    assert live[0]["id"] == run_id
    assert live[0]["progress"] == "phase 1 of 1"
    assert "step 2 of 3: Do pause" in live[1]["progress"]
    screen = (await daily_service.baton("status", UNIT)).stdout
    assert f"{UNIT} at " in screen
    assert "run        Load step 1: Running, phase 1 of 1 (Quick scan), step 2 of 3" in screen
    assert "supply     Beam: Available" in screen
    assert "clearance  Load frame: in force without end" in screen
    assert (await daily_service.answer("status", UNIT))["runs"][0]["run_id"] == run_id
    assert [one["name"] for one in await daily_service.answer("status")] == [UNIT]

    held = await daily_service.answer("hold", "Load step 1", "--reason", "the sample slipped")
    assert held == {"kind": "run", "id": run_id, "name": "Load step 1", "command": "hold_run", "status": "Held"}
    [waiting] = await daily_service.answer("waiting")
    assert (waiting["id"], waiting["name"]) == (run_id, "Load step 1")
    assert "the sample slipped" in (await daily_service.baton("waiting")).stdout
    assert "resume_run" in (await daily_service.baton("waiting", "--on", UNIT)).stdout
    assert "the sample slipped" in (await daily_service.baton("status")).stdout

    assert (await daily_service.refusal("hold", "Load step 1"))[0] == 1
    with daily_service.open_command("watch", "Load step 1", directory=tmp_path) as output:
        resumed = await daily_service.baton("resume", "Load step 1")
        assert resumed.stdout == "The run 'Load step 1' is Running.\n"
        daily_service.pauses.end()
        await until(lambda: "succeeded after" in output.read_text())
    done = await daily_service.baton("watch", run_id)
    assert (done.returncode, done.stdout.splitlines()[0].split(" after")[0]) == (0, "succeeded")
    assert (await daily_service.answer("ps"), await daily_service.answer("waiting")) == ([], [])


async def test_a_run_that_is_watched_from_its_start_exits_by_its_result(daily_service: DailyService, tmp_path: Path) -> None:
    daily_service.pauses.end()
    done = await daily_service.baton("run", PLAN, "--name", "Watched", "--watch")
    await daily_service.pauses.wait_until_reached()
    assert (done.returncode, done.stdout.splitlines()[0].split(" after")[0]) == (0, "succeeded"), done.stderr

    await start_run(daily_service, "Watched too")
    with daily_service.open_command("watch", "Watched too", "--json", directory=tmp_path) as output:
        assert (await daily_service.answer("abort", "Watched too", "-m", "smoke"))["command"] == "abort_run"
        await until(lambda: output.read_text().endswith("}\n"))
    assert json.loads(output.read_text())["succeeded"] is False
    assert (await daily_service.baton("watch", "Watched too")).returncode == 1


async def test_a_recipe_is_conducted_on_an_asset_and_its_procedure_steered(daily_service: DailyService) -> None:
    started = await daily_service.answer("conduct", RECIPE, "--on", CAMERA, "--name", "Warm up")
    await daily_service.pauses.wait_until_reached()
    assert started["kind"] == "procedure"
    held = (await daily_service.baton("hold", "Warm up")).stdout
    assert held == "The procedure 'Warm up' is Running; it was asked to hold and will when its step allows.\n"
    daily_service.pauses.end()
    assert (await daily_service.baton("watch", "Warm up")).returncode == 1
    assert (await daily_service.answer("ps"))[0]["status"] == "Held"
    assert (await daily_service.baton("resume", "Warm up")).returncode == 0
    done = await daily_service.baton("conduct", "watch", started["id"])
    assert (done.returncode, done.stdout.splitlines()[0].split(" after")[0]) == (0, "succeeded")


async def test_everything_is_held_with_one_command_and_stopped_by_name(daily_service: DailyService) -> None:
    run_id = await start_run(daily_service, "Load step 2")
    await daily_service.answer("conduct", RECIPE, "--on", UNIT, "--name", "Beside it")
    await daily_service.pauses.wait_until_reached()
    would = await daily_service.answer("hold-everything", "--dry-run")
    assert would.keys() == {"would", "answer", "approval_needed"}
    assert {one["status"] for one in await daily_service.answer("ps") if one["kind"] == "run"} == {"Running"}
    everything = await daily_service.answer("hold-everything", "--reason", "smoke in the hutch")
    assert run_id in {one["id"] for one in everything["held"]}
    assert (everything["refused"], everything["still_armed"]) == ([], [])
    again = (await daily_service.baton("hold-everything", "--on", UNIT)).stdout.splitlines()
    assert again[0].startswith("Nothing further was held; nothing left in scope starts by itself; held before: ")
    assert "was held already: run 'Load step 2'" in again
    for _ in "12":
        daily_service.pauses.end()
    assert (await daily_service.answer("stop", "Load step 2", "-m", "enough"))["command"] == "stop_run"

    async def only_the_procedure_is_left() -> bool:
        return [(one["name"], one["status"]) for one in await daily_service.answer("ps")] == [("Beside it", "Held")]

    await until(only_the_procedure_is_left)
    assert (await daily_service.answer("abort", "Beside it"))["status"] == "Aborted"
    for name in ("Load step 2", "Beside it"):
        assert (await daily_service.baton("watch", name)).returncode == 1


async def test_dry_runs_record_nothing(daily_service: DailyService) -> None:
    before = await daily_service.answer("events", "-n", "1")
    started = (await daily_service.baton("run", PLAN, "--name", "Never", "--dry-run")).stdout
    assert started.startswith("It would record LaunchRequested in Launch ")
    assert "It would record RunStarted in Run " in started
    conducted = (await daily_service.baton("conduct", RECIPE, "--on", CAMERA, "--dry-run")).stdout
    assert "ProcedureRegistered" in conducted
    would = await daily_service.answer("dry-run", "register_subject", "name=Bar 8")
    assert [one["event_type"] for one in would["would"]] == ["SubjectRegistered"]
    assert await daily_service.answer("events", "-n", "1") == before


async def test_a_preflight_names_the_gates_that_are_closed(daily_service: DailyService) -> None:
    opened = await daily_service.baton("preflight", PLAN)
    assert (opened.returncode, opened.stdout.splitlines()[-1][:4]) == (0, "All ")
    await daily_service.answer("call", "mark_supply_unavailable", "Beam", "reason=beam dump")
    closed = await daily_service.baton("preflight", PLAN)
    assert closed.returncode == 1
    assert "closed: supply_available: No supply of kind photon_beam in scope is Available" in closed.stdout
    code, sentence = await daily_service.refusal("run", PLAN)
    assert (code, sentence.startswith("No supply of kind photon_beam")) == (1, True)
    assert sentence.endswith("]")
    await daily_service.answer("call", "mark_supply_recovering", "Beam", "reason=injecting")
    await daily_service.answer("call", "restore_supply", "Beam", "reason=beam back")


async def test_a_preflight_for_a_later_time_prints_what_would_have_to_be_true(daily_service: DailyService) -> None:
    asked = await daily_service.baton("preflight", PLAN, "--at", "22:00")
    assert asked.returncode == 0, asked.stdout
    assert asked.stdout.startswith("THEN")
    assert "supply_available" in asked.stdout
    assert "Of what a start needs, 0 would be missing then" in asked.stdout
    refused = await daily_service.baton("preflight", PLAN, "--at", "2020-01-01T00:00")
    assert refused.returncode == 1


async def test_a_rehearsal_says_what_would_stop_it_by_its_exit_code(daily_service: DailyService) -> None:
    found = await daily_service.baton("rehearse", PLAN, "--json")
    verdict = json.loads(found.stdout)["verdict"]
    assert found.returncode == {"goes_through": 0, "may_stop_at": 2, "stops_at": 1}[verdict], found.stderr
    recipes = await daily_service.answer("call", "list_recipes")
    alone = await daily_service.baton("rehearse", recipes["items"][0]["name"])
    assert alone.returncode in (0, 1, 2)
    assert alone.stdout.startswith(("It ", "A start ", "No step")), alone.stderr


async def test_events_are_printed_and_followed(daily_service: DailyService, tmp_path: Path) -> None:
    with daily_service.open_command(
        "events", "-f", "-n", "0", "--type", "SubjectRegistered", "--json", directory=tmp_path
    ) as output:
        made: list[str] = []

        async def is_followed() -> bool:
            name = f"Bar {uuid4()}"
            made.append((await daily_service.answer("call", "register_subject", f"name={name}"))["subject_id"])
            return bool(output.read_text())

        await until(is_followed)
    followed = [json.loads(line) for line in output.read_text().splitlines()]
    assert {one["event_type"] for one in followed} == {"SubjectRegistered"}
    assert [one["stream_id"] for one in followed] == made[-len(followed) :]
    line = (await daily_service.baton("events", "-n", "1", "--type", "SubjectRegistered")).stdout
    assert f"SubjectRegistered  Subject {made[-1]}  not signed in" in line
    assert (await daily_service.baton("events", "--since", "2999-01-01")).stdout == ""
    assert (await daily_service.refusal("events", "-f", "--until", "2026-01-01"))[0] == 2
    asset = await daily_service.answer("call", "register_asset", "name=Ring 2", "tier=Unit", "facility_code=facility")
    [line] = (await daily_service.baton("events", "--on", asset["asset_id"])).stdout.splitlines()
    assert "AssetRegistered" in line


async def test_names_that_leave_open_what_is_meant_list_the_candidates(daily_service: DailyService) -> None:
    code, sentence = await daily_service.refusal("hold", "Nothing of that name")
    assert (code, sentence) == (2, "There is no run and no procedure 'Nothing of that name'; `baton ps` shows what is live.")
    ids = [(await daily_service.answer("call", "register_subject", "name=Twin"))["subject_id"] for _ in "12"]
    code, sentence = await daily_service.refusal("run", PLAN, "--subject", "Twin")
    assert (code, sentence.startswith("2 things of kind subject are called 'Twin'")) == (2, True)
    assert all(id in sentence for id in ids)
    twins = [
        (await daily_service.answer("call", "register_procedure", "name=Twin", "kind=alignment"))["procedure_id"]
        for _ in "12"
    ]
    code, sentence = await daily_service.refusal("abort", "Twin")
    assert (code, sentence.startswith("2 runs or procedures are called 'Twin'; name one by its id: ")) == (2, True)
    assert all(id in sentence for id in twins)
    code, sentence = await daily_service.refusal("run", "Springblock")
    assert code == 2
    assert sentence.startswith("There is no plan called 'Springblock'.")


async def test_a_refusal_says_why_on_stderr_and_its_body_is_the_json_document(daily_service: DailyService) -> None:
    nothing = str(uuid4())
    code, sentence = await daily_service.refusal("call", "get_run", nothing)
    assert (code, sentence.startswith(f"There is no run {nothing}")) == (1, True)
    done = await daily_service.baton("call", "get_run", nothing, "--json")
    assert (done.returncode, json.loads(done.stdout)["code"]) == (1, "RunNotFoundError")
    asset = await daily_service.answer("call", "register_asset", "name=Ring", "tier=Unit", "facility_code=facility")
    refused = await daily_service.baton("call", "enter_asset_maintenance", asset["asset_id"])
    way = [f"  baton call {verb} asset_id={asset['asset_id']}" for verb in ("activate_asset", "enter_asset_maintenance")]
    assert refused.stderr.splitlines()[1:] == [f"baton: {line}" for line in ("The way there:", *way)]


async def test_any_operation_is_called_with_names_json_and_files(daily_service: DailyService, tmp_path: Path) -> None:
    file = tmp_path / "steps.json"
    file.write_text('[{"kind": "setpoint", "address": "a", "value": 1}]')
    recipe = await daily_service.answer(
        "call", "define_recipe", "name=2026", "capability_id=Scan", f"steps=@{file}", "closing_steps=[]"
    )
    view = await daily_service.answer("call", "get_recipe", "2026")
    assert (view["name"], len(view["steps"]), UUID(recipe["recipe_id"])) == ("2026", 1, UUID(view["id"]))
    code, sentence = await daily_service.refusal("call", "hold_run", "reson=x")
    assert (code, sentence.startswith("hold_run has no field 'reson'; it takes run_id, reason")) == (2, True)
    code, sentence = await daily_service.refusal("call", "hold_runn")
    assert (code, sentence.startswith("There is no operation 'hold_runn'. Did you mean hold_run")) == (2, True)
    assert (await daily_service.refusal("call", "register_asset", "tier=Nonsense"))[0] == 2
    code, sentence = await daily_service.refusal("dry-run", "get_run", str(uuid4()))
    assert (code, sentence) == (2, "get_run is a query and records nothing; use `baton call get_run`.")


async def test_a_service_that_is_away_is_said_with_what_to_do(daily_service: DailyService) -> None:
    code, sentence = await daily_service.refusal("ps", "--url", "http://127.0.0.1:1")
    assert code == 2
    assert sentence.startswith("No service answers at http://127.0.0.1:1 (")
    assert sentence.endswith("; start it with `baton up`, or name its address with --url or --profile.")
    assert (await daily_service.refusal("ps", "--url", "nonsense"))[0] == 2
    assert (await daily_service.baton("ps", "--nonsense")).returncode == 2
