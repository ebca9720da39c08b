"""How watched work is shown while it continues: a bar in a terminal or notebook, or lines."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from baton.client.svg_plot import figure_of
from baton.client.terminal_plot import curve_lines, row_line
from baton.client.watched_work import WatchedWork, duration
from baton.client.wording import terminal_text

REDRAWS = 4  # of a bar in a second
Update = Callable[[bool], None]  # takes whether the frame says more than that the next step has begun


def show_work(
    work: WatchedWork, console: Console | None, *, lines: bool, plot: str | bool = False, table: bool = False
) -> AbstractContextManager[Update]:
    """Show work on a console: a bar where it moves, with the curve of its points where one is wanted, otherwise lines where
    they are wanted, or nothing. Points are lines where a table is wanted, and a curve that cannot move is one. A notebook
    has one figure for the curve."""
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    moves = console.is_interactive or console.is_jupyter
    curve = plot if isinstance(plot, str) else "" if plot else None
    still = print_lines(work, console) if lines else show_nothing()
    shown = show_bar(work, console, None if console.is_jupyter else curve) if moves else still
    if curve is not None and console.is_jupyter:
        shown = show_figure(shown, work, curve)
    return print_points(shown, work, console) if table or (curve is not None and not moves) else shown


@contextmanager
def show_figure(shown: AbstractContextManager[Update], work: WatchedWork, wanted: str) -> Iterator[Update]:
    """Yield what updates a display, and one figure of the points in a notebook, a few times a second and at the end."""
    notebook: Any = import_module("IPython.display")
    figure = notebook.display(notebook.HTML(figure_of([], wanted)), display_id=True)
    drawn_at = -math.inf

    def draw() -> None:
        figure.update(notebook.HTML(figure_of([*work.points.values()], wanted)))

    def tell(is_notable: bool) -> None:
        nonlocal drawn_at
        update(is_notable)
        if time.monotonic() - drawn_at >= 1 / REDRAWS:
            draw()
            drawn_at = time.monotonic()

    with shown as update:
        try:
            yield tell
        finally:
            draw()


@contextmanager
def print_points(shown: AbstractContextManager[Update], work: WatchedWork, console: Console) -> Iterator[Update]:
    """Yield what updates a display, and prints a line for each point that is new."""
    printed: dict[int, str] = {}

    def tell(is_notable: bool) -> None:
        update(is_notable)
        for ordinal, point in work.points.items():
            if not point.is_open and printed.get(ordinal) != (line := row_line(point)):
                printed[ordinal] = line
                console.print(terminal_text(line), highlight=False, markup=False)

    with shown as update:
        yield tell


class TextColumn(ProgressColumn):
    """A column whose text is computed at each refresh."""

    def __init__(self, text: Callable[[Task], Text]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return self._text(task)


class PlottedProgress(Progress):
    """A bar with the curve of the points below it, where one is wanted."""

    def __init__(self, work: WatchedWork, plot: str | None, *columns: ProgressColumn, **options: Any) -> None:
        self._work, self._plot = work, plot
        self._braille = not options["console"].options.ascii_only
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self._plot is not None:
            lines = curve_lines([*self._work.points.values()], self._plot, braille=self._braille)
            yield Text(terminal_text("\n".join(lines)))


@contextmanager
def show_bar(work: WatchedWork, console: Console, plot: str | None = None) -> Iterator[Update]:
    """Show a progress bar, which is removed when the work has ended; yield what updates it."""
    line = TextColumn(lambda task: Text(terminal_text(work.line), style="red" if work.is_worker_lost else ""))
    steps = TextColumn(lambda task: Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}"))
    elapsed = TextColumn(lambda task: Text(duration(work.elapsed_seconds), style="progress.elapsed"))
    columns = (BarColumn(24), steps, elapsed, line)
    with PlottedProgress(work, plot, *columns, console=console, transient=True, refresh_per_second=REDRAWS) as progress:
        task = progress.add_task("", total=None)
        yield lambda _: progress.update(task, completed=min(work.step_index, work.count), total=work.count or None)


@contextmanager
def print_lines(work: WatchedWork, console: Console) -> Iterator[Update]:
    """Yield what prints a line, where a frame says more than that the next step has begun."""
    printed = ""

    def update(is_notable: bool) -> None:
        nonlocal printed
        if is_notable and work.line != printed:
            printed = work.line
            console.print(terminal_text(printed), highlight=False, markup=False)

    yield update


@contextmanager
def show_nothing() -> Iterator[Update]:
    yield lambda _: None
