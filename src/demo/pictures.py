"""Diagrams of the results, as PNG files."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from baton.demo.optics import Image

INK, MARK = "#1f3a5f", "#d1495b"


def convergence(path: Path, offsets: Sequence[float], tolerance: float) -> None:
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


def focus(path: Path, looks: Sequence[tuple[float, float]]) -> None:
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


def tomogram(path: Path, shadows: Image, found: Image, sample: Image, likeness: float) -> None:
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
