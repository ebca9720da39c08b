"""The output of the demonstration: a heading for each stage, a line for each fact, a bar for whatever takes time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from baton.demo.staff import StageError

N = TypeVar("N")
UpdateBar = Callable[[int, int, str], None]  # takes how many of how many are done, and what is being done


@dataclass
class StageResult:
    title: str
    seconds: float | None = None
    fault: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.seconds is not None and self.fault is None


@dataclass
class Narrator:
    console: Console = field(default_factory=lambda: Console(highlight=False, emoji=False))

    def say(self, fact: str) -> None:
        self.console.print(f"   {fact}", markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, title: str) -> Iterator[UpdateBar]:
        """Provide a progress bar, which is not drawn outside a terminal."""
        columns = (
            *(TextColumn("  "), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn()),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as progress:
            task = progress.add_task(title, total=None)

            def update(done: int, of: int, doing: str) -> None:
                progress.update(task, completed=min(done, of), total=of or None, description=f"{title}: {doing}")

            yield update

    def run_stages(self, stages: Sequence[tuple[str, Callable[[N], None]]], night: N) -> list[StageResult]:
        results = [StageResult(title) for title, _ in stages]
        for number, (result, (_, act)) in enumerate(zip(results, stages, strict=True), 1):
            self.console.print(f"\n[bold cyan]{number:2}[/] [bold]{result.title}[/]")
            begun = monotonic()
            try:
                act(night)
            except Exception as error:
                result.fault = str(error) if isinstance(error, StageError) else f"{type(error).__name__}: {error}"
            result.seconds = monotonic() - begun
            if result.fault:
                self.console.print(f"   {result.fault}", style="red", markup=False, soft_wrap=True)
                break
        return results

    def print_summary(self, stages: Sequence[StageResult]) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("", "stage", "seconds"):
            table.add_column(heading, justify="right" if heading == "seconds" else "left")
        for stage in stages:
            outcome = "[green]done[/]" if stage.succeeded else "[red]failed[/]" if stage.fault else "[yellow]not reached[/]"
            table.add_row(outcome, stage.title, "" if stage.seconds is None else f"{stage.seconds:.1f}")
        self.console.print()
        self.console.print(table)
