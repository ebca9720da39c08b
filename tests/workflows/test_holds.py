"""Holds: at every moment of every conduct, beside anything else, and taken up again with nothing lost or done twice.

The reference interpreter says how each must end; many procedures are held at once, each at a moment of its own. With
HOLD_MATRIX=all they are held at every moment, and not only at some of them.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

import baton.cli.worker
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductFromProcedure, ConductUntilConverged
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.steered_conduct import (
    AdviseProcedure,
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
)
from baton.domain.enclosure.enclosure import RegisterEnclosure
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.run.run import HoldRun
from baton.domain.shared.refusals import Refusal
from baton.domain.start.run_start import ResumeRun, StartRun
from baton.domain.supply.supply import DegradeSupply, DeregisterSupply, MarkSupplyRecovering, MarkSupplyUnavailable
from tests.support.waiting import until
from tests.support.workflows.conduct_cases import CaseAction, ConductCase
from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.conduct_watch import Gate
from tests.support.workflows.many_conducts import CaseConduct, ManyConducts
from tests.support.workflows.reference_interpreter import ReferenceProcedure
from tests.support.workflows.run_cases import build_run_stack
from tests.support.workflows.step_json import (
    action,
    capture,
    captured_value,
    check,
    compute,
    criterion,
    setpoint,
    steered_value,
)

FLAT, CONVERGED, ADVISED = "ConductProcedure", "ConductUntilConverged", "ConductUntilAdvised"
OR_HOLD = "ConductOrHoldProcedure"
MODES = (FLAT, CONVERGED, ADVISED)
SEEDS = itertools.count()
HELD = {"step_index": None, "source_kind": "lifecycle", "target": "hold", "error_class": "ProcedureHeldByOperator"}
ALL = os.environ.get("HOLD_MATRIX") == "all"


@pytest.fixture
def stack(watched_stack: ConductStack) -> ConductStack:
    return watched_stack


def centring_case(seed: int, command: str = FLAT, **faults: Any) -> dict[str, Any]:
    """A recipe of every kind of step, to be gone through twice where it is a loop."""

    def signal(name: str) -> str:
        return f"real:{seed}:{name}"

    signals: dict[str, Any] = {"x": 0, "ready": 1, "position": 2.5, "exposed": 0, "y": 0, "shutter": 1, "lamp": 1}
    return {
        "seed": seed,
        "command": command,
        "literal": False,
        "steps": [
            setpoint(signal("x"), steered_value("x") if command == ADVISED else 1.5),
            check(signal("ready"), 1, timeout=0.05),
            capture(signal("position"), "position"),
            action("work", job=f"{seed}:expose", writes=[[signal("exposed"), 1]], then=faults.get("then", "return")),
            compute("measure", str(seed), capture_name="offset", parameters={"at": captured_value("position")}),
            setpoint(signal("y"), captured_value("offset")),
        ],
        "closing_steps": [setpoint(signal("shutter"), 0), setpoint(signal("lamp"), captured_value("position"))],
        "programs": {f"measure {seed}": [answer(3.0, **faults.get("program", {})), answer(0.0)]},
        "plant": {signal(name): {"value": value, **faults.get(name, {})} for name, value in signals.items()},
        "cap": None,
        "convergence": {"name": "offset", "criterion": criterion(0, 0.5), "cap": None} if command == CONVERGED else None,
        "search": SEARCH if command == ADVISED else None,
    }


SEARCH = {
    "axes": [{"name": "x", "lower": 0.0, "upper": 1.0}],
    "objective": {"kind": "Minimize", "target_measurement_name": "offset", "target_value": None},
    "objective_capture_name": "offset",
    "decide": {"substrate": "grid_walk", "points_per_axis": 2},
    "budget": None,
}


def answer(offset: float, **fault: Any) -> dict[str, Any]:
    measured = {"name": "offset", "value": offset, "kind": "Scalar", "quality": "Good"}
    return {"status": "Succeeded", "measurements": [measured], "writes_nothing": False, "submit": None, **fault}


def conduct_moments(command: str) -> list[ConductMoment]:
    """The moments that a conduct of this recipe comes by; of a loop, during the steps of one pass and before the other's."""
    procedure = ReferenceProcedure(centring_case(0, command))
    procedure.begin({})
    passes = {"before": 2, "during": 1, "after": 0}
    steps = ("do_step", "collect_job")
    found = [one for one in procedure.passed if one.what not in steps or one.iteration_index in (0, passes[one.when])]
    return found if ALL else sample_moments(command, found)


def sample_moments(command: str, moments: Iterable[ConductMoment]) -> list[ConductMoment]:
    """Of each piece of work one moment: before it, during it and after it in turn; of a loop, of what only loops do and of
    one step, in its first pass."""
    pieces: dict[ConductMoment, list[ConductMoment]] = {}
    for one in moments:
        known = one.closing or one.what in ("brief_conduct", "collect_job", "end_conduct") or one.step_index not in (None, 3)
        if command == FLAT or not (known or one.iteration_index > 1):
            pieces.setdefault(one._replace(when=""), []).append(one)
    return [piece[number % len(piece)] for number, piece in enumerate(pieces.values())]


def every_place() -> list[tuple[str, ConductMoment]]:
    return [(command, moment) for command in MODES for moment in conduct_moments(command)]


def case_asked_at(command: str, moment: ConductMoment, *requests: str, **faults: Any) -> ConductCase:
    """A case in which this is asked for at this moment; a held conduct is resumed where it stands, until it is over."""
    described = centring_case(seed := next(SEEDS), command, **faults)
    procedure = ReferenceProcedure(deepcopy(described))
    acts = [CaseAction("begin", script={moment: list(requests)})]
    procedure.begin(acts[0].script)
    while procedure.status == "Held":
        acts.append(CaseAction("resume", resume_fields(procedure), mends=bool(faults)))
        if faults:
            procedure.plant.mend()
        procedure.resume({}, **acts[-1].given)
    return ConductCase(seed, described, acts, procedure)


def resume_fields(procedure: ReferenceProcedure) -> dict[str, Any]:
    """How a held conduct is taken up: at the step it came to, or after an acquisition that failed."""
    if procedure.mode != "Flat":
        return {"budget": None} if procedure.mode == "Advised" else {}
    last = procedure.results[-1]
    failed = last["failure"]["source_kind"] in ("action", "compute")
    return {"boundary": (last["re_establishment_boundary"] or 0) + last["completed_count"] + failed}


def is_void(command: str, moment: ConductMoment) -> bool:
    """Whether a hold at this moment comes too late, because closing has begun or the loop has come to its end."""
    if moment.closing or moment.what == "end_conduct" or moment == ConductMoment("after", "begin_closing"):
        return True
    is_judged = moment.what == ("judge_pass" if command == CONVERGED else "advise_pass") and moment.iteration_index == 2
    is_advised = command == ADVISED and moment == ConductMoment("after", "record_outcome", 2)
    return command != FLAT and (moment.what == "begin_closing" or is_judged or is_advised)


async def register_cases(
    cases: Iterable[ConductCase], many_conducts: ManyConducts, stack: ConductStack
) -> list[CaseConduct]:
    """Register the procedures of these cases, each on an asset of its own."""
    conducts = [CaseConduct(case, many_conducts) for case in cases]
    for conduct in conducts:
        asset = await stack.do(RegisterAsset(name="Stage", tier="Unit", facility_code="facility"))
        await conduct.register(stack, target_asset_ids=[(asset.body or {})["asset_id"]])
    return conducts


async def perform_acts(conducts: Iterable[CaseConduct], number: int, stack: ConductStack) -> None:
    """Perform one act of every case that has it, all at once."""
    acts = [(conduct, act) for conduct in conducts for act in conduct.case.acts[number : number + 1]]
    await asyncio.gather(*(conduct.perform(act, stack) for conduct, act in acts))


async def finish_and_compare(conducts: Sequence[CaseConduct], stack: ConductStack, after: int = 1) -> None:
    """Take every conduct up until it is over, and compare it with what the reference interpreter expects."""
    for number in range(after, max(len(conduct.case.acts) for conduct in conducts)):
        await perform_acts(conducts, number, stack)
    for conduct in conducts:
        conduct.stack = stack
    found = {str(conduct.case.acts[0]): differences for conduct in conducts if (differences := await conduct.differences())}
    assert not found, found


async def claimed_assets(stack: ConductStack) -> list[Any]:
    """The assets that conducts have to themselves."""
    async with stack.runtime.pool.connection() as connection:
        found = await connection.execute("SELECT key FROM claims WHERE kind = 'conducted-asset'")
        return await found.fetchall()


async def test_a_hold_is_served_whenever_it_is_asked_for_and_taken_up_after_a_restart_of_everything(
    many_conducts: ManyConducts, stack: ConductStack, database: str, temporal: EmbeddedTemporal
) -> None:
    await stack.stop_worker()
    places = every_place()
    async with many_conducts.open_stack(database, temporal.address) as first:
        conducts = await register_cases([case_asked_at(*place, "hold") for place in places], many_conducts, first)
        await perform_acts(conducts, 0, first)
        assert await claimed_assets(first) == []
        for conduct, (command, moment) in zip(conducts, places, strict=True):
            (result,) = await conduct.results()
            void = is_void(command, moment)
            assert (result["held"], result["failure"]) == (not void, None if void else HELD), str(moment)
            assert (await first.procedure(conduct.id)).hold_lapsed is void, str(moment)
    async with many_conducts.open_stack(database, temporal.address) as second:
        await finish_and_compare(conducts, second)
        assert {(await second.procedure(conduct.id)).status for conduct in conducts} == {ProcedureStatus.COMPLETED}
    flat = [conduct for conduct, (command, _) in zip(conducts, places, strict=True) if command == FLAT]
    for conduct in flat:
        assert [value for _, value in conduct.writes] == [1.5, 1, 3.0, 0, 2.5], "each once, in their order"
        assert len(conduct.performed_jobs) == 1
    seeds = {str(conduct.case.seed) for conduct in flat}
    assert sum(job.command[1] in seeds for job in many_conducts.compute.submissions) == len(flat)
    await stack.start_worker()


async def test_a_hold_before_anybody_works_holds_before_the_first_step(
    many_conducts: ManyConducts, stack: ConductStack
) -> None:
    first = ConductMoment("before", "brief_conduct")
    conducts = await register_cases([case_asked_at(mode, first, "hold") for mode in MODES], many_conducts, stack)
    await stack.stop_worker()
    for conduct in conducts:
        await stack.do(conduct.command(conduct.case.acts[0]), conduct.id)
        await conduct.ask("hold")
    await stack.start_worker()
    for conduct in conducts:
        await stack.wait_until_over(conduct.id)
        (result,) = await conduct.results()
        assert (result["held"], result["completed_count"], result["failure"]) == (True, 0, HELD)
    assert ([conduct.writes for conduct in conducts], await claimed_assets(stack)) == ([[]] * 3, [])
    await finish_and_compare(conducts, stack)


async def test_an_abort_beats_a_hold_whichever_comes_first(many_conducts: ManyConducts, stack: ConductStack) -> None:
    orders = (("hold", "abort"), ("abort", "hold"))
    places = every_place()[::3]
    cases = [case_asked_at(*place, *orders[number % 2]) for number, place in enumerate(places)]
    conducts = await register_cases(cases, many_conducts, stack)
    await perform_acts(conducts, 0, stack)
    assert {(await stack.procedure(conduct.id)).status for conduct in conducts} == {ProcedureStatus.ABORTED}
    assert await claimed_assets(stack) == []
    await finish_and_compare(conducts, stack)


async def test_a_hold_and_an_abort_at_once_abort_without_closing(many_conducts: ManyConducts, stack: ConductStack) -> None:
    places = [moment for moment in conduct_moments(FLAT) if moment.when == "before" and not moment.closing][:-1]
    cases = [case_asked_at(FLAT, moment, "hold", "abort") for moment in places]
    conducts = await register_cases(cases, many_conducts, stack)
    for conduct, place in zip(conducts, places, strict=True):
        many_conducts.watch.watchers[conduct.id] = ask_for_both(conduct, place)
    await asyncio.gather(*(stack.do(conduct.command(conduct.case.acts[0]), conduct.id) for conduct in conducts))
    for conduct in conducts:
        await stack.wait_until_over(conduct.id)
        (result,) = await conduct.results()
        assert (result["held"], result["failure"]["error_class"]) == (False, "ProcedureAborted")
        assert (await stack.procedure(conduct.id)).status is ProcedureStatus.ABORTED
        assert not any("shutter" in address for address, _ in conduct.writes)
        assert conduct.refusals in ([], ["ProcedureCannotHoldError"])


def ask_for_both(conduct: CaseConduct, place: ConductMoment) -> Any:
    async def watcher(moment: ConductMoment) -> None:
        if moment == place:
            await asyncio.gather(conduct.ask("abort"), conduct.ask("hold"))

    return watcher


async def test_a_hold_at_once_with_a_resume_is_served_or_refused(many_conducts: ManyConducts, stack: ConductStack) -> None:
    cases = [case_asked_at(FLAT, ConductMoment("before", "do_step", 0, False, 3), "hold") for _ in range(16 if ALL else 4)]
    conducts = await register_cases(cases, many_conducts, stack)
    await perform_acts(conducts, 0, stack)
    await asyncio.gather(*(resume_and_hold_at_once(conduct, stack) for conduct in conducts))


async def resume_and_hold_at_once(conduct: CaseConduct, stack: ConductStack) -> None:
    """Take a conduct up and hold it at once; see that it was held or not, and that nothing is lost or done twice."""
    await asyncio.gather(stack.do(conduct.command(conduct.case.acts[1]), conduct.id), conduct.ask("hold"))
    await stack.wait_until_over(conduct.id)
    last = (await conduct.results())[-1]
    served = (await stack.procedure(conduct.id)).status is ProcedureStatus.HELD
    assert (last["held"], last["failure"]) == (served, HELD if served else None)
    assert conduct.refusals in ([], ["ProcedureCannotHoldError"])
    if served:
        boundary = 3 + last["completed_count"]
        await stack.do(ConductFromProcedure(re_establishment_boundary=boundary, wait=60), conduct.id)
    assert (await stack.procedure(conduct.id)).status is ProcedureStatus.COMPLETED
    assert [value for _, value in conduct.writes] == [1.5, 1, 3.0, 0, 2.5]
    assert len(conduct.performed_jobs) == 1


@asynccontextmanager
async def gated_conducts(
    cases: Sequence[ConductCase], many_conducts: ManyConducts, stack: ConductStack
) -> AsyncIterator[tuple[list[CaseConduct], asyncio.Event]]:
    """Everything under way and kept waiting, each at its moment, until the event is set; held at the end of the block."""
    conducts, opened = await register_cases(cases, many_conducts, stack), asyncio.Event()
    gates = [Gate(opened) for _ in conducts]
    for conduct, gate in zip(conducts, gates, strict=True):
        ((place, _),) = conduct.case.acts[0].script.items()
        many_conducts.watch.watchers[conduct.id] = wait_at_gate(place, gate)
        await stack.do(conduct.command(conduct.case.acts[0]), conduct.id)
    async with asyncio.timeout(120):
        await asyncio.gather(*(gate.reached.wait() for gate in gates))
    try:
        yield conducts, opened
    finally:
        opened.set()
    await asyncio.gather(*(until(conduct.has_ended, within=120) for conduct in conducts))


def wait_at_gate(place: ConductMoment, gate: Gate) -> Any:
    """Wait at the gate when a conduct comes by this moment, as often as the engine has it tried until the gate is open."""

    async def watcher(moment: ConductMoment) -> None:
        if moment == place:
            await gate.wait_until_open()

    return watcher


async def test_a_hold_together_with_the_end_of_a_worker_is_served_by_the_next_one(
    many_conducts: ManyConducts, stack: ConductStack
) -> None:
    cases = [case_asked_at(FLAT, moment, "hold") for moment in conduct_moments(FLAT)[::2]]
    async with gated_conducts(cases, many_conducts, stack) as (conducts, opened):

        async def ask_for_holds() -> None:
            await asyncio.gather(*(conduct.ask("hold") for conduct in conducts))
            opened.set()

        await asyncio.gather(ask_for_holds(), stack.stop_worker())
        await stack.start_worker()
    await finish_and_compare(conducts, stack)


async def test_a_hold_of_steps_that_a_worker_left_undone_touches_nothing_more(
    many_conducts: ManyConducts, stack: ConductStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is told to stop cuts off what takes too long: then the ledger alone knows what was begun. What it does
    without the engine, as it begins a conduct, it is given a minute for."""
    monkeypatch.setattr(baton.cli.worker, "SHUTDOWN_GRACE", timedelta(seconds=0.1))
    undone = [moment for moment in conduct_moments(FLAT) if moment.when != "during" and not is_void(FLAT, moment)]
    if not ALL:
        undone = [moment for moment in undone if moment.what != "brief_conduct"]
    begun = [ConductMoment("during", "do_step", 0, False, index) for index in range(6)]
    begun.append(ConductMoment("during", "collect_job", 0, False, 4))
    cases = [case_asked_at(FLAT, moment, "hold") for moment in (*undone, *begun)]
    async with gated_conducts(cases, many_conducts, stack) as (conducts, opened):
        await asyncio.gather(stack.stop_worker(), *(conduct.ask("hold") for conduct in conducts))
        opened.set()
        await stack.start_worker()
    cut_off = conducts[len(undone) :]
    told = [
        ((await conduct.results())[0]["completed_count"], (await conduct.results())[0]["failure"]) for conduct in cut_off
    ]
    assert [count for count, _ in told] == [0, 1, 2, 3, 4, 5, 5], "what is left of a step is not counted"
    classes = [failure["error_class"] for _, failure in told]
    assert classes == [
        *(["ProcedureHeldByOperator"] * 3),
        "ActionOutcomeUnknown",
        "ComputeOutcomeUnknown",
        *(["ProcedureHeldByOperator"] * 2),
    ]
    assert all([(await conduct.results())[0]["held"] for conduct in conducts])
    assert not any("shutter" in address for conduct in cut_off for address, _ in conduct.writes)
    await finish_and_compare(conducts[: len(undone)], stack)


FAILURES: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"x": {"fault": "rejecting"}}, "ControlWriteRejectedError", (FLAT, OR_HOLD, CONVERGED)),
    ({"ready": {"fault": "bad"}}, "CheckFailedError", (FLAT, OR_HOLD, ADVISED)),
    ({"position": {"connected": False}}, "ControlNotConnectedError", (CONVERGED, FLAT)),
    ({"then": "break"}, "RuntimeError", (FLAT, ADVISED)),
    ({"program": {"status": "Failed"}}, "ComputeJobFailedError", (OR_HOLD, CONVERGED)),
]
"""How each step of the recipe fails, and in which conducts; ordinarily in one of them."""


async def test_a_hold_and_a_failure_at_once_are_held_with_the_failure_told_and_nothing_closed(
    many_conducts: ManyConducts, stack: ConductStack
) -> None:
    cases, told = [], []
    for index, (faults, error_class, commands) in enumerate(FAILURES):
        for command in commands if ALL else [commands[index % len(commands)]]:
            place = ConductMoment("during", "do_step", 1 if command in (CONVERGED, ADVISED) else 0, False, index)
            cases.append(case_asked_at(command, place, "hold", **faults))
            told.append((True, error_class, index))
    conducts = await register_cases(cases, many_conducts, stack)
    await perform_acts(conducts, 0, stack)
    for conduct, expected in zip(conducts, told, strict=True):
        (result,) = await conduct.results()
        failure = result["failure"]
        assert (result["held"], failure["error_class"], failure["step_index"]) == expected
        procedure = await stack.procedure(conduct.id)
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, "Operator")
        assert not any("shutter" in address for address, _ in conduct.writes)
    assert await claimed_assets(stack) == []
    await finish_and_compare(conducts, stack)


async def test_nobody_resumes_into_a_closed_hutch(many_conducts: ManyConducts, stack: ConductStack) -> None:
    refused = {}
    hutches = [await register_hutch(stack, name) for name in ("Optics hutch", "Imaging hutch")]
    assets = [await register_asset_in(stack, enclosure_id) for enclosure_id in hutches]
    moment = ConductMoment("before", "do_step", 0, False, 2)
    for command in MODES:
        place = moment._replace(iteration_index=0 if command == FLAT else 1)
        conduct = CaseConduct(case_asked_at(command, place, "hold"), many_conducts)
        await conduct.register(stack, target_asset_ids=assets)
        await conduct.perform(conduct.case.acts[0], stack)
        before = await record_of(conduct)
        for statuses in (("NotPermitted", "Permitted"), ("NotPermitted", "NotPermitted"), ("Permitted", "Unknown")):
            for enclosure_id, status in zip(hutches, statuses, strict=True):
                await stack.observe_permit(enclosure_id, status)
            refused[command, statuses] = await resume_refusal(stack, conduct)
            assert await record_of(conduct) == before
        for enclosure_id in hutches:
            await stack.observe_permit(enclosure_id, "Permitted")
        await finish_and_compare([conduct], stack)
    mixed, closed = "ProcedureEnclosureCoverageMismatchError", "ProcedureRequiresPermittedEnclosureError"
    assert list(refused.values()) == [mixed, closed, mixed] * 3


async def test_nobody_resumes_without_beam(many_conducts: ManyConducts, stack: ConductStack) -> None:
    refused = []
    floor = await build_run_stack(stack)
    run = await stack.do(StartRun(name="Load step 1", plan_id=floor.plan_id))
    run_id = UUID((run.body or {})["run_id"])
    moment = ConductMoment("before", "do_step", 0, False, 2)
    conducts = []
    for command in MODES:
        place = moment._replace(iteration_index=0 if command == FLAT else 1)
        conducts.append(CaseConduct(case_asked_at(command, place, "hold"), many_conducts))
        await conducts[-1].register(stack, parent_run_id=run_id)
        await conducts[-1].perform(conducts[-1].case.acts[0], stack)
    before = [await record_of(conduct) for conduct in conducts]
    await stack.do(MarkSupplyUnavailable(reason="beam dump"), floor.supply_id)
    refused += [await resume_refusal(stack, conduct) for conduct in conducts]
    await stack.do(MarkSupplyRecovering(reason="refill"), floor.supply_id)
    refused += [await resume_refusal(stack, conduct) for conduct in conducts]
    assert [await record_of(conduct) for conduct in conducts] == before
    await stack.do(DegradeSupply(reason="low current"), floor.supply_id)
    await finish_and_compare(conducts[:2], stack)
    await stack.do(MarkSupplyUnavailable(reason="beam dump"), floor.supply_id)
    await stack.do(DeregisterSupply(reason="undulator removed"), floor.supply_id)
    refused.append(await resume_refusal(stack, conducts[2]))
    assert await record_of(conducts[2]) == before[2]
    assert refused == ["ProcedureSupplyCoverageMismatchError"] * 6 + ["ProcedureRequiresAvailableSupplyError"]


async def register_hutch(stack: ConductStack, name: str) -> UUID:
    enclosure = await stack.do(RegisterEnclosure(name=name, facility_code="facility"))
    enclosure_id = UUID((enclosure.body or {})["enclosure_id"])
    await stack.observe_permit(enclosure_id, "Permitted")
    return enclosure_id


async def register_asset_in(stack: ConductStack, enclosure_id: UUID) -> str:
    place = {"name": "Camera", "tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": enclosure_id}
    return str(((await stack.do(RegisterAsset(**place))).body or {})["asset_id"])


async def resume_refusal(stack: ConductStack, conduct: CaseConduct) -> str:
    """The class by which a held conduct is not taken up."""
    with pytest.raises(Refusal) as refused:
        await stack.do(conduct.command(conduct.case.acts[1]), conduct.id)
    return refused.value.code


async def record_of(conduct: CaseConduct) -> Any:
    """All that a refused resume must leave as it was."""
    stack = conduct.stack
    return (
        await stack.procedure(conduct.id),
        await stack.event_types(conduct.id),
        conduct.writes,
        await claimed_assets(stack),
    )


async def test_a_search_is_held_while_it_waits_for_advice(many_conducts: ManyConducts, stack: ConductStack) -> None:
    described = centring_case(seed := next(SEEDS), ADVISED)
    described["search"] = {**SEARCH, "decide": {"substrate": "caller", "advice_timeout": 60}}
    conduct = CaseConduct(ConductCase(seed, described, [CaseAction("begin")], ReferenceProcedure(described)), many_conducts)
    await conduct.register(stack)
    begun: ConductUntilAdvised = conduct.command(conduct.case.acts[0])
    await stack.do(begun, conduct.id)

    async def asked_view() -> Any:
        view = await stack.ask(GetProcedureSteering(), conduct.id)
        return view if view.waiting else None

    assert (await until(asked_view)).iteration_index == 1
    await conduct.ask("hold")
    with pytest.raises(Refusal) as late:
        await stack.do(AdviseProcedure(iteration_index=1, advice={"verdict": "Stop"}), conduct.id)
    assert late.value.reason == "request_pending"
    await stack.wait_until_over(conduct.id)
    (result,) = await conduct.results()
    assert (result["held"], result["failure"], result["iteration_count"]) == (True, HELD, 1)
    assert (await stack.event_types(conduct.id))[-4:] == [
        "ProcedureHoldRequested",
        "ProcedureIterationEnded",
        "ProcedureConducted",
        "ProcedureHeld",
    ]
    given = begun.model_dump(by_alias=True, exclude={"wait", "first_point"})
    await stack.do(ConductUntilAdvisedFrom(**given, wait=0), conduct.id)
    assert (await until(asked_view)).iteration_index == 2, "what was measured is known, and where to go on is asked at once"
    await stack.do(AdviseProcedure(iteration_index=2, advice={"verdict": "Stop"}), conduct.id)
    await stack.wait_until_over(conduct.id)
    assert (await stack.procedure(conduct.id)).status is ProcedureStatus.COMPLETED
    assert (len(conduct.performed_jobs), (await conduct.results())[-1]["iteration_count"]) == (1, 1)


async def test_a_phase_is_held_while_it_waits_for_its_held_run(many_conducts: ManyConducts, stack: ConductStack) -> None:
    floor = await build_run_stack(stack)
    conducts, runs = [], {}
    for command in MODES:
        run = await stack.do(StartRun(name="Load step 1", plan_id=floor.plan_id))
        place = ConductMoment("before", "do_step", 0 if command == FLAT else 1, False, 3)
        conduct = CaseConduct(case_asked_at(command, place, "hold"), many_conducts)
        run_id = (run.body or {})["run_id"]
        await conduct.register(stack, parent_run_id=run_id)
        conducts.append(conduct)
        runs[conduct.id] = UUID(run_id)
        many_conducts.watch.watchers[conduct.id] = hold_run_at(conduct, place, UUID(run_id))
        await stack.do(conduct.command(conduct.case.acts[0]), conduct.id)
    for conduct in conducts:
        await until(lambda conduct=conduct: is_waiting_for(stack, conduct.id, "run"))
        await stack.do(HoldProcedure(reason="shift change"), conduct.id)
    for conduct in conducts:
        await stack.wait_until_over(conduct.id)
        (result,) = await conduct.results()
        assert (result["held"], result["completed_count"], result["failure"]) == (True, 3, HELD)
        assert await resume_refusal(stack, conduct) == "ProcedureCannotResumeError", "its run is held"
        await stack.do(ResumeRun(), runs[conduct.id])
    await finish_and_compare(conducts, stack)
    await stack.do(MarkSupplyUnavailable(reason="beam dump"), floor.supply_id)
    await stack.do(DeregisterSupply(reason="other tests have their own"), floor.supply_id)


def hold_run_at(conduct: CaseConduct, place: ConductMoment, run_id: UUID) -> Any:
    """Hold the parent run when a conduct first comes by this moment."""

    async def watcher(moment: ConductMoment) -> None:
        if moment == place:
            del conduct.many_conducts.watch.watchers[conduct.id]
            await conduct.stack.do(HoldRun(reason="top-up"), run_id)

    return watcher


async def is_waiting_for(stack: ConductStack, procedure_id: UUID, what: str) -> bool:
    async with stack.runtime.pool.connection() as connection:
        found = await connection.execute("SELECT waiting_for FROM conduct_progress WHERE procedure_id = %s", [procedure_id])
        return (await found.fetchone()) == (what,)


async def test_a_loop_that_was_held_in_every_pass_converges_as_if_it_never_was(
    many_conducts: ManyConducts, stack: ConductStack
) -> None:
    described = centring_case(seed := next(SEEDS), CONVERGED)
    described["programs"][f"measure {seed}"].insert(1, answer(3.0))
    procedure = ReferenceProcedure(deepcopy(described))
    acts = [CaseAction("begin", script={ConductMoment("during", "do_step", 1, False, 4): ["hold"]})]
    procedure.begin(acts[0].script)
    acts.append(CaseAction("resume", script={ConductMoment("before", "judge_pass", 2): ["hold"]}))
    procedure.resume(acts[1].script)
    acts.append(CaseAction("resume"))
    procedure.resume({})
    (conduct,) = await register_cases([ConductCase(seed, described, acts, procedure)], many_conducts, stack)
    await perform_acts([conduct], 0, stack)
    held = await stack.procedure(conduct.id)
    assert (held.consecutive_unconverged_iterations, held.iteration_count) == (0, 1), "a held pass does not count"
    await perform_acts([conduct], 1, stack)
    held = await stack.procedure(conduct.id)
    assert (held.consecutive_unconverged_iterations, held.iteration_count) == (1, 2), "one that has measured does"
    await finish_and_compare([conduct], stack, after=2)
    with pytest.raises(Refusal):
        await stack.do(ConductUntilConverged(convergence_capture_name="offset", criterion=criterion(0, 0.5)), conduct.id)
