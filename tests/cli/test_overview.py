"""The screen of `baton status`."""

from datetime import UTC, datetime
from uuid import UUID

from baton.cli.daily.overview import run_lines
from baton.domain.conduct.live_views import RunNow
from tests.support.tables import for_each

NOW = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)


@for_each(("witnessed", "said"), [(True, "count 42: Running, witnessed"), (False, "count 42: Running")])
def test_a_run_that_happens_elsewhere_says_so(witnessed: bool, said: str) -> None:
    told = {"name": "count 42", "status": "Running", "plan_name": "Bluesky at BL7", "witnessed": witnessed, "lost": False}
    who = {"started_at": NOW, "started_by_name": "Bluesky at BL7", "run_id": UUID(int=7)}
    run = RunNow.model_construct(**told, **who, phase=None, step=None, estimate=None, hold=None)
    assert next(run_lines(run, NOW)).split(maxsplit=1) == ["run", said]
