"""The asset tree as a picture in SVG, drawn on the server: boxes from left to right, each with its state by sign, word and
colour. Colours come from the stylesheet, so that the picture fits both themes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from markupsafe import Markup, escape

from baton.console.display import GOOD, LIVE, LOOK, PLAIN, SIGNS, STOP, look_of, words_of

MOST_BOXES = 60
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 222, 40, 34, 8, 8
FEW_LEAVES, MOST_COLUMNS = 4, 4  # more leaves of one asset than these stand in so many columns
NAME_LETTERS, LINE_LETTERS = 27, 34
GRAVITY = (STOP, LOOK, LIVE, PLAIN, GOOD)
"""How states look, the gravest first."""


@dataclass(frozen=True)
class TreeAsset:
    """One asset of a picture: what it is part of, its two axes, and what else is marked on it."""

    id: str
    parent_id: str | None
    name: str
    lifecycle: str
    condition: str
    href: str
    in_use: bool = False
    cautions: int = 0

    @property
    def look(self) -> str:
        """How the graver of the two axes looks."""
        return min(look_of(self.lifecycle), look_of(self.condition), key=GRAVITY.index)

    @property
    def line(self) -> str:
        """What stands below the name."""
        marks = (f"▲ {self.cautions}" if self.cautions else "", "● in use" if self.in_use else "")
        return " · ".join((words_of(self.lifecycle), words_of(self.condition), *filter(None, marks)))


@dataclass(frozen=True)
class TreePicture:
    """A picture, and how many assets it leaves out."""

    svg: Markup
    left_out: int


@dataclass
class PlacedBox:
    """A box of the picture; one that stands for several assets has no asset."""

    depth: int
    asset: TreeAsset | None
    hidden: int = 0
    children: "list[PlacedBox]" = field(default_factory=list)
    x: int = MARGIN
    y: int = MARGIN

    @property
    def columns(self) -> int:
        """How many columns its children stand in, where they are many and have none themselves; 0 where each has a line."""
        is_grid = len(self.children) > FEW_LEAVES and not any(child.children for child in self.children)
        return min(max(MOST_COLUMNS - self.depth, 2), ceil(len(self.children) / 3)) if is_grid else 0


def tree_picture(assets: Sequence[TreeAsset], label: str, more_href: str = "") -> TreePicture:
    """Return the picture of a tree; the first asset is its root. What does not fit is counted where it would stand."""
    children: dict[str | None, list[TreeAsset]] = defaultdict(list)
    for asset in assets[1:]:
        children[asset.parent_id].append(asset)
    root = PlacedBox(0, assets[0])
    drawn = place_children(root, children)
    place_below(root)
    boxes = boxes_of(root)
    width = max(box.x for box in boxes) + WIDTH + MARGIN
    height = max(box.y for box in boxes) + HEIGHT + MARGIN
    shapes = [*(edge_svg(box) for box in boxes if box.children), *(box_svg(box, more_href) for box in boxes)]
    svg = (
        f'<svg class="tree" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" '
        f'aria-label="{escape(label)}">{"".join(shapes)}</svg>'
    )
    return TreePicture(Markup(svg), len(assets) - drawn)


def place_children(root: PlacedBox, children: Mapping[str | None, Sequence[TreeAsset]]) -> int:
    """Hang boxes below the root, level by level while there is room; return how many assets have one."""
    drawn, waiting = 1, [root]
    while waiting:
        box = waiting.pop(0)
        assert box.asset is not None, "only boxes of assets have others below them"
        below, room = children.get(box.asset.id, ()), MOST_BOXES - drawn
        if not below:
            continue
        shown = below if len(below) <= room else below[: max(room - 1, 0)]
        box.children = [PlacedBox(box.depth + 1, asset) for asset in shown]
        drawn += len(shown)
        waiting += box.children
        hidden = sum(size_of(asset, children) for asset in below[len(shown) :])
        if hidden and shown:
            box.children.append(PlacedBox(box.depth + 1, None, hidden))
        box.hidden = 0 if shown else hidden
    return drawn


def size_of(asset: TreeAsset, children: Mapping[str | None, Sequence[TreeAsset]]) -> int:
    """Return how many assets a branch has."""
    return 1 + sum(size_of(one, children) for one in children.get(asset.id, ()))


def place_below(box: PlacedBox) -> int:
    """Place what is below a box, the first of it beside the box itself; return where the next box may stand."""
    left, top = box.x + WIDTH + ACROSS, box.y
    if columns := box.columns:
        for number, child in enumerate(box.children):
            row, column = divmod(number, columns)
            child.x, child.y = left + column * (WIDTH + DOWN), top + row * (HEIGHT + DOWN)
        return box.children[-1].y + HEIGHT + 2 * DOWN
    for child in box.children:
        child.x, child.y = left, top
        top = place_below(child)
    return top if box.children else box.y + HEIGHT + DOWN


def boxes_of(box: PlacedBox) -> "list[PlacedBox]":
    """Return a box and all below it, from the top down."""
    return [box, *(one for child in box.children for one in boxes_of(child))]


def edge_svg(box: PlacedBox) -> str:
    """Return the lines from a box to those below it; many leaves are framed, with one line to all."""
    x, y = box.x + WIDTH, box.y + HEIGHT // 2
    if columns := box.columns:
        pad, rows = DOWN // 2, ceil(len(box.children) / columns)
        left, top = box.children[0].x - pad, box.children[0].y - pad
        width, height = columns * (WIDTH + DOWN) - DOWN + 2 * pad, rows * (HEIGHT + DOWN) - DOWN + 2 * pad
        frame = f'<rect class="group" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>'
        return f'<path class="edge" d="M{x} {y}H{left}"/>{frame}'
    turns = "".join(f"M{x} {y}h{ACROSS // 2}V{one.y + HEIGHT // 2}h{ACROSS // 2}" for one in box.children)
    return f'<path class="edge" d="{turns}"/>'


def box_svg(box: PlacedBox, more_href: str) -> str:
    """Return one box, which leads to its asset's page."""
    asset = box.asset
    if asset is None:
        text = f'<text class="s" x="14" y="25">and {box.hidden} more</text>'
        shape = f'<rect class="box" width="{WIDTH}" height="{HEIGHT}" rx="6"/>{text}'
        inner = f'<a href="{escape(more_href)}">{shape}</a>' if more_href else shape
        return f'<g class="more" transform="translate({box.x},{box.y})">{inner}</g>'
    line = f"{asset.line} · {box.hidden} below" if box.hidden else asset.line
    return (
        f'<g class="{asset.look}" transform="translate({box.x},{box.y})"><a href="{escape(asset.href)}">'
        f"<title>{escape(asset.name)}: {escape(line)}</title>"
        f'<rect class="box" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<rect class="bar" x="1" y="1" width="5" height="{HEIGHT - 2}" rx="2.5"/>'
        f'<text class="t" x="14" y="17">{escape(short_text(asset.name, NAME_LETTERS))}</text>'
        f'<text class="s" x="14" y="32">{SIGNS[asset.look]} {escape(short_text(line, LINE_LETTERS))}</text></a></g>'
    )


def short_text(text: str, most: int) -> str:
    """Return as much of a text as a box has room for."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
