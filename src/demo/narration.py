"""The output of the demonstration: headings of stages, lines for facts, and diagrams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from baton.demo.optics import Image
from baton.demo.staff import StageError

N = TypeVar("N")
INK, MARK = "#1f3a5f", "#d1495b"


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
        for heading in ("", "stage"):
            table.add_column(heading)
        table.add_column("seconds", justify="right")
        for stage in stages:
            outcome = "[green]done[/]" if stage.succeeded else "[red]failed[/]" if stage.fault else "[yellow]not reached[/]"
            table.add_row(outcome, stage.title, "" if stage.seconds is None else f"{stage.seconds:.1f}")
        self.console.print()
        self.console.print(table)


def draw_convergence(path: Path, offsets: Sequence[float], tolerance: float) -> None:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    passes = range(1, len(offsets) + 1)
    axes.axhspan(0, tolerance, color=MARK, alpha=0.15, label=f"converged: {tolerance} px or less")
    axes.plot(passes, [abs(offset) for offset in offsets], "o-", color=INK)
    for number, offset in zip(passes, offsets, strict=True):
        axes.annotate(f"{offset:.2f}", (number, abs(offset)), (6, 6), textcoords="offset points", color=INK)
    axes.set(title="Centring the rotation axis", xlabel="pass", ylabel="axis off the middle (px)", yscale="symlog")
    axes.set_xticks(passes)
    axes.set_ylim(0, 2 * max(map(abs, offsets)))
    axes.legend(loc="upper right")
    save(figure, path)


def draw_focus(path: Path, looks: Sequence[tuple[float, float]]) -> None:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*sorted(looks), strict=True), "-", color=INK, alpha=0.35)
    points, values = zip(*looks, strict=True)
    axes.scatter(points, values, c=range(len(looks)), cmap="viridis", zorder=3)
    for number, look in enumerate(looks, 1):
        axes.annotate(str(number), look, (5, 5), textcoords="offset points", color=INK)
    best, sharpness = max(looks, key=lambda look: look[1])
    axes.axvline(best, color=MARK, linestyle=":", label=f"sharpest at {best:.3f} mm")
    axes.set(title="Focus, as an agent found it", xlabel="camera (mm)", ylabel="sharpness", ylim=(0, 1.15 * sharpness))
    axes.legend(loc="upper left")
    save(figure, path)


def draw_tomogram(path: Path, shadows: Image, found: Image, sample: Image, likeness: float) -> None:
    figure = Figure(figsize=(11, 4), layout="constrained")
    seen, made, real = figure.subplots(1, 3)
    seen.imshow(shadows, cmap="gray", aspect="auto")
    seen.set(title=f"{len(shadows)} projections", xlabel="column", ylabel="projection")
    made.imshow(found, cmap="gray", vmin=0)
    made.set(title="reconstructed slice")
    real.imshow(sample, cmap="gray", vmin=0)
    real.set(title=f"the sample itself (likeness {likeness:.3f})")
    for axes in (made, real):
        axes.set_axis_off()
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
