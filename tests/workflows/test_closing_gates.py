"""Gates that close while a conduct is under way: wherever it is, the next step does not begin, the service holds, nothing is
closed, and what is taken up again repeats nothing."""

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from baton.application.control import Reading
from baton.application.unit_of_work import load_event_rows, require_state
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.enclosure.enclosure import RegisterEnclosure
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.kernel import NIL
from baton.domain.procedure.procedure import ProcedureConducted, ProcedureHeld, ProcedureStatus
from baton.domain.run.run import Run, RunHeld, RunStatus
from baton.domain.start.run_start import ResumeRun, StartRun
from baton.domain.supply.supply import MarkSupplyRecovering, MarkSupplyUnavailable, RestoreSupply
from tests.support.waiting import until
from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.many_conducts import ManyConducts
from tests.support.workflows.run_cases import build_run_stack
from tests.support.workflows.step_json import action, check, setpoint

CLOSED = "ProcedureRequiresPermittedEnclosureError"
MAIN = 5
SEEDS = itertools.count()
SOME_PLACES = {"supply": [0, 2, 3], "enclosure": [3]}
MOMENTS = [(when, index) for index in range(MAIN) for when in ("before", "during")]


@pytest.fixture
def stack(watched_stack: ConductStack) -> ConductStack:
    return watched_stack


def steps_of(seed: int) -> tuple[list[Any], list[Any]]:
    """A stretch of two, a step that takes long, and a stretch of two again; then a closing step."""
    signals = [setpoint(f"real:{seed}:{name}", value) for value, name in enumerate("abcd")]
    work = action("work", job=f"{seed}:expose", writes=[[f"real:{seed}:e", 1]], then="return")
    main = [*signals[:2], check(f"real:{seed}:a", 0, timeout=5), work, signals[3]]
    return main, [setpoint(f"real:{seed}:shutter", 0)]


async def furnish(many_conducts: ManyConducts, stack: ConductStack, *, declared: bool, **fields: Any) -> Any:
    """A procedure on the signals of an asset in a hutch of its own, which is its target or only owns what is written:
    the hutch, the procedure, and by what their names are known."""
    seed = next(SEEDS)
    enclosure = await stack.do(RegisterEnclosure(name=f"Hutch {seed}", facility_code="facility"))
    enclosure_id = UUID((enclosure.body or {})["enclosure_id"])
    await stack.observe_permit(enclosure_id, "Permitted")
    own = {} if declared else {"alternate_identifiers": [{"kind": "EPICS_PV", "value": f"real:{seed}"}]}
    place = {"tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": enclosure_id}
    asset = await stack.do(RegisterAsset(name=f"Stage {seed}", **place, **own))
    for name in ("a", "b", "c", "d", "e", "shutter"):
        many_conducts.plant.set_reading(f"real:{seed}:{name}", Reading(value=0))
    targets = [(asset.body or {})["asset_id"]] if declared else []
    return enclosure_id, await stack.register_from_recipe(*steps_of(seed), target_asset_ids=targets, **fields), seed


def close_at(many_conducts: ManyConducts, procedure_id: UUID, at: tuple[str, int], close: Any) -> None:
    """Close the gate when the conduct comes by this moment for the first time."""
    when, index = at

    async def watcher(moment: ConductMoment) -> None:
        if moment == ConductMoment(when, "do_step", 0, False, index):
            del many_conducts.watch.watchers[procedure_id]
            await close()

    many_conducts.watch.watchers[procedure_id] = watcher


def done_before(at: tuple[str, int]) -> int:
    """How many steps are done when a gate closes at this moment."""
    when, index = at
    return index + (when == "during")


def written_signals(many_conducts: ManyConducts, seed: int) -> list[str]:
    return [address.split(":")[2] for address, _ in many_conducts.control.writes if address.split(":")[1] == str(seed)]


@pytest.mark.parametrize("undeclared", [MOMENTS[3::5], pytest.param(MOMENTS, marks=pytest.mark.soak)], ids=["some", "all"])
async def test_a_permit_that_goes_holds_at_the_next_step_wherever_the_conduct_is(
    undeclared: list[tuple[str, int]], many_conducts: ManyConducts, stack: ConductStack
) -> None:
    cases = []
    for declared, moments in ((True, MOMENTS), (False, undeclared)):  # a target, or what owns the signals
        for at in moments:
            enclosure_id, procedure_id, seed = await furnish(many_conducts, stack, declared=declared)
            close = lambda id=enclosure_id: stack.observe_permit(id, "NotPermitted")  # noqa: E731
            close_at(many_conducts, procedure_id, at, close)
            cases.append((seed, at, enclosure_id, procedure_id))
    await asyncio.gather(*(stack.do(ConductProcedure(wait=0), id) for *_, id in cases))
    for seed, at, enclosure_id, id in cases:
        await until(lambda id=id: has_ended(stack, id))
        procedure, (result,) = await stack.procedure(id), await results(stack, id)
        if at == MOMENTS[-1]:
            assert procedure.status is ProcedureStatus.COMPLETED, "no step is left to hold at"
            continue
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, "GateClosed"), str(at)
        assert (result.held, result.failure.error_class, result.completed_count) == (True, CLOSED, done_before(at)), at
        assert f"Hutch {seed}" in procedure.last_status_reason
        held = await load_event_rows(stack.runtime.store, id, ProcedureHeld)
        assert [event.principal_id for event in held] == [NIL], "the service holds, nobody asked for it"
        assert "shutter" not in written_signals(many_conducts, seed), "a hold closes nothing"
        await stack.observe_permit(enclosure_id, "Permitted")
        await stack.do(ConductFromProcedure(wait=0), id)
    for seed, _, _, id in cases:
        await until(lambda id=id: has_ended(stack, id))
        assert (await stack.procedure(id)).status is ProcedureStatus.COMPLETED
        assert written_signals(many_conducts, seed) == ["a", "b", "e", "d", "shutter"], "nothing is left out or repeated"


async def test_what_is_not_watched_holds_nothing(many_conducts: ManyConducts, stack: ConductStack) -> None:
    enclosure_id, id, _ = await furnish(many_conducts, stack, declared=True, watch=[])
    close_at(many_conducts, id, ("before", 1), lambda: stack.observe_permit(enclosure_id, "NotPermitted"))
    await stack.do(ConductProcedure(wait=0), id)
    await until(lambda: has_ended(stack, id))
    assert (await stack.procedure(id)).status is ProcedureStatus.COMPLETED


@pytest.mark.parametrize(
    "places",
    [SOME_PLACES, pytest.param(dict.fromkeys(SOME_PLACES, range(MAIN)), marks=pytest.mark.soak)],
    ids=["some", "all"],
)
async def test_a_supply_that_goes_holds_the_run_of_a_phase_where_it_is_watched(
    places: dict[str, Iterable[int]], many_conducts: ManyConducts, stack: ConductStack
) -> None:
    floor = await build_run_stack(stack)
    for watch, index in [(watch, index) for watch, indexes in places.items() for index in indexes]:
        run_id = UUID(((await stack.do(StartRun(name="Load step", plan_id=floor.plan_id))).body or {})["run_id"])
        _, id, seed = await furnish(many_conducts, stack, declared=True, parent_run_id=run_id, watch=[watch])
        go = lambda: stack.do(MarkSupplyUnavailable(reason="beam dump"), floor.supply_id)  # noqa: E731
        close_at(many_conducts, id, ("before", index), go)
        await stack.do(ConductProcedure(wait=0), id)
        if watch == "supply":
            await until(lambda run_id=run_id: run_status(stack, run_id, RunStatus.HELD))
            held = await load_event_rows(stack.runtime.store, run_id, RunHeld)
            assert [event.principal_id for event in held] == [NIL]
            assert len(written_signals(many_conducts, seed)) == sum(place != 2 for place in range(index))
        else:
            await until(lambda id=id: has_ended(stack, id))
        await stack.do(MarkSupplyRecovering(reason="refill"), floor.supply_id)
        await stack.do(RestoreSupply(reason="beam is back"), floor.supply_id)
        if watch == "supply":
            await stack.do(ResumeRun(), run_id)
        await until(lambda id=id: has_ended(stack, id))
        assert (await stack.procedure(id)).status is ProcedureStatus.COMPLETED
        assert written_signals(many_conducts, seed) == ["a", "b", "e", "d", "shutter"]


async def has_ended(stack: ConductStack, procedure_id: UUID) -> bool:
    procedure = await stack.procedure(procedure_id)
    return procedure.live_conduct_id is None and procedure.status is not ProcedureStatus.DEFINED


async def run_status(stack: ConductStack, run_id: UUID, status: RunStatus) -> bool:
    return (await require_state(stack.runtime.store, Run, run_id)).status is status


async def results(stack: ConductStack, procedure_id: UUID) -> list[Any]:
    return [event.result for event in await stack.events(procedure_id) if isinstance(event, ProcedureConducted)]
