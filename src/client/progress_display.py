"""How watched work is shown while it continues: a bar in a terminal or notebook, or lines."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from baton.client.watched_work import WatchedWork, duration
from baton.client.wording import terminal_text

Update = Callable[[bool], None]  # takes whether the frame says more than that the next step has begun


def show_work(work: WatchedWork, console: Console | None, *, lines: bool) -> AbstractContextManager[Update]:
    """Show work on a console: a bar where it moves, otherwise lines where they are wanted, or nothing."""
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    if console.is_interactive or console.is_jupyter:
        return show_bar(work, console)
    return print_lines(work, console) if lines else show_nothing()


class TextColumn(ProgressColumn):
    """A column whose text is computed at each refresh."""

    def __init__(self, text: Callable[[Task], Text]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return self._text(task)


@contextmanager
def show_bar(work: WatchedWork, console: Console) -> Iterator[Update]:
    """Show a progress bar, which is removed when the work has ended; yield what updates it."""
    line = TextColumn(lambda task: Text(terminal_text(work.line), style="red" if work.is_worker_lost else ""))
    steps = TextColumn(lambda task: Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}"))
    elapsed = TextColumn(lambda task: Text(duration(work.elapsed_seconds), style="progress.elapsed"))
    with Progress(BarColumn(24), steps, elapsed, line, console=console, transient=True) as progress:
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
