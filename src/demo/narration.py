"""How the night is told: a heading for each stage, a line for each fact, a bar for whatever takes time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from baton.demo.people import StageError

N = TypeVar("N")
Bar = Callable[[int, int, str], None]
"""Tells how many of how many, and what is being done."""


@dataclass
class Stage:
    """What a stage came to; nothing where it was not reached."""

    title: str
    seconds: float | None = None
    fault: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.seconds is not None and self.fault is None


@dataclass
class Teller:
    """Says what happens, to whoever watches."""

    console: Console = field(default_factory=lambda: Console(highlight=False, emoji=False))

    def say(self, fact: str) -> None:
        self.console.print(f"   {fact}", markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, title: str) -> Iterator[Bar]:
        """A bar for something that takes time; where nobody watches it move, only its end is told."""
        columns = (
            TextColumn("  "),
            BarColumn(24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as progress:
            task = progress.add_task(title, total=None)

            def told(done: int, of: int, doing: str) -> None:
                progress.update(task, completed=min(done, of), total=of or None, description=f"{title}: {doing}")

            yield told

    def tell(self, stages: Sequence[tuple[str, Callable[[N], None]]], night: N) -> list[Stage]:
        """Go through the stages in their order, and no farther than the first that fails."""
        told = [Stage(title) for title, _ in stages]
        for number, (stage, (_, act)) in enumerate(zip(told, stages, strict=True), 1):
            self.console.print(f"\n[bold cyan]{number:2}[/] [bold]{stage.title}[/]")
            begun = monotonic()
            try:
                act(night)
            except StageError as error:
                stage.fault = str(error)
            except Exception as error:
                stage.fault = f"{type(error).__name__}: {error}"
            stage.seconds = monotonic() - begun
            if stage.fault:
                self.console.print(f"   {stage.fault}", style="red", markup=False, soft_wrap=True)
                break
        return told

    def sum_up(self, stages: Sequence[Stage]) -> None:
        """A line for each stage: whether it did what it should, and what it took."""
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("", "stage", "seconds"):
            table.add_column(heading, justify="right" if heading == "seconds" else "left")
        for stage in stages:
            outcome = "[green]done[/]" if stage.succeeded else "[red]failed[/]" if stage.fault else "[yellow]not reached[/]"
            table.add_row(outcome, stage.title, "" if stage.seconds is None else f"{stage.seconds:.1f}")
        self.console.print()
        self.console.print(table)
