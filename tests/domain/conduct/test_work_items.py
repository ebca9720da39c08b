"""Long work under its id: who may read it, and what it says while it runs, when it is done, and when it failed."""

from dataclasses import replace
from uuid import UUID

from baton.domain.conduct.work_items import GetWork, WorkFound, WorkView
from baton.domain.shared.refusals import ConcurrencyError
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

WORK, CORRELATION = new_id(), new_id()
RUNNING = WorkFound(
    principal_id=OPERATOR,
    readable_with="GetProcedure",
    correlation_id=CORRELATION,
    ids={"procedure_id": "p", "work_id": str(WORK)},
    message="step 7 of 40",
)


def read_work(world: World, found: WorkFound | None, as_: UUID = OPERATOR) -> WorkView:
    world.principal_id = as_
    world.ports["find_work"] = lambda work_id: found if work_id == WORK else None
    view: WorkView = world.ask(GetWork(work_id=WORK))
    return view


def test_running_work_says_how_far_it_is() -> None:
    seen = read_work(World(), RUNNING)
    assert (seen.state, seen.ids, seen.message) == ("running", RUNNING.ids, "step 7 of 40")
    assert (seen.answer, seen.error) == (None, None)


def test_work_that_is_done_has_its_answer_even_if_that_is_a_failure() -> None:
    seen = read_work(World(), replace(RUNNING, answer={"succeeded": False}, message=None))
    assert (seen.state, seen.answer, seen.error) == ("done", {"succeeded": False}, None)


def test_work_that_was_refused_has_the_body_of_the_refusal() -> None:
    refusal = ConcurrencyError("Somebody was faster.", reason="version_taken", facts={"version": 3})
    seen = read_work(World(), replace(RUNNING, refusal=refusal))
    assert (seen.state, seen.answer) == ("failed", None)
    assert seen.error is not None
    assert seen.error.model_dump() == {
        "detail": "Somebody was faster.",
        "code": "ConcurrencyError",
        "context": "edge",
        "reason": "version_taken",
        "facts": {"version": 3},
        "correlation_id": CORRELATION,
    }


def test_others_need_the_permission_of_what_it_is_about() -> None:
    world, stranger = World(), new_id()
    assert read_work(world, RUNNING, as_=stranger).state == "running"
    world.denied = {"GetProcedure"}
    with expect_refusal("WorkNotFoundError"):
        read_work(world, RUNNING, as_=stranger)
    assert read_work(world, RUNNING).state == "running"


@for_each("denied", [set(), {"GetProcedure"}])
def test_work_that_may_not_be_read_is_told_no_differently_from_work_that_is_not_there(denied: set[str]) -> None:
    world = World(denied={"GetProcedure"})
    with expect_refusal("WorkNotFoundError") as hidden:
        read_work(world, RUNNING, as_=new_id())
    world.denied = denied
    with expect_refusal("WorkNotFoundError") as absent:
        read_work(world, None, as_=new_id())
    assert hidden.value.detail == absent.value.detail
