"""Tables of many cheap cases, each table run as one test: collecting and reporting a test costs more than such a case."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Failure = (Exception, pytest.fail.Exception)
MOST_SECONDS, MOST_SECONDS_A_CASE = 120, 5
"""How long a table may take on a busy machine."""


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test with every case as `parametrize` would, as one test that reports all cases that fail."""
    keys, rows = (names,) if isinstance(names, str) else names, list(cases)
    assert rows, "a table without cases proves nothing"

    def arguments(row: Any) -> dict[str, Any]:
        if isinstance(row, ParameterSet):
            return dict(zip(keys, row.values, strict=True))
        return {keys[0]: row} if isinstance(names, str) else dict(zip(keys, row, strict=True))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run(*instance: Any, **fixtures: Any) -> None:
                failures = []
                for row in rows:
                    try:
                        await test(*instance, **arguments(row), **fixtures)
                    except Failure as failure:
                        failures.append(_with_case(failure, row))
                _report(failures, len(rows))
        else:

            @wraps(test)
            def run(*instance: Any, **fixtures: Any) -> None:
                failures = []
                for row in rows:
                    try:
                        test(*instance, **arguments(row), **fixtures)
                    except Failure as failure:
                        failures.append(_with_case(failure, row))
                _report(failures, len(rows))

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return pytest.mark.timeout(MOST_SECONDS + MOST_SECONDS_A_CASE * len(rows))(run)

    return decorate


def _with_case(failure: BaseException, row: Any) -> BaseException:
    failure.add_note(f"case: {row.id if isinstance(row, ParameterSet) else row!r:.300}")
    return failure


def _report(failures: list[BaseException], count: int) -> None:
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases failed", failures)
