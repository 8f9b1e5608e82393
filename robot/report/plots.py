"""Plots as inline SVG: they follow the page's colours, light and dark, and need no library."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

from robot.trials import Result
from robot.types import Outcome

WIDTH, LABEL, RIGHT = 960.0, 150.0, 230.0
INNER = WIDTH - LABEL - RIGHT


def svg(width: float, height: float, parts: Sequence[str], *, name: str) -> str:
    """Return one drawing; ``name`` says what it shows to whom cannot see it."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(name)}">'
        + "".join(parts)
        + "</svg>"
    )


def text(x: float, y: float, said: str, *, anchor: str = "start", soft: bool = False) -> str:
    """Return a line of text whose baseline starts, is centred or ends at ``x, y``."""
    kind = ' class="soft"' if soft else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(said)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line of the style ``kind``."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def success_bars(arms: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one bar an arm: success rate with its interval, and k of n."""
    parts: list[str] = []
    bottom = 14 + 34 * len(arms)
    for percent in (0, 25, 50, 75, 100):
        x = LABEL + INNER * percent / 100
        parts += [line(x, 6, x, bottom, "axis")]
        parts += [text(x, bottom + 16, f"{percent} %", anchor="middle", soft=True)]
    for row, (name, arm) in enumerate(arms.items()):
        y = 12 + 34 * row
        parts.append(text(LABEL - 12, y + 16, name, anchor="end"))
        parts.append(f'<rect x="{LABEL}" y="{y}" width="{INNER}" height="22" class="track"/>')
        if not arm["n"]:
            parts.append(text(LABEL + INNER + 14, y + 16, "nothing counted", soft=True))
            continue
        low, high = (LABEL + INNER * v for v in arm["interval"])
        width = INNER * arm["rate"]
        parts.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="22" class="bar"/>')
        parts.append(line(low, y + 11, high, y + 11, "whisker"))
        parts += [line(x, y + 5, x, y + 17, "whisker") for x in (low, high)]
        a, b = (100 * v for v in arm["interval"])
        said = f"{100 * arm['rate']:.1f} %  ({arm['k']}/{arm['n']}; {a:.0f} to {b:.0f} %)"
        parts.append(text(LABEL + INNER + 14, y + 16, said))
    return svg(WIDTH, bottom + 24, parts, name="Success rate of each arm with 95 % interval")


def differences(pairs: Sequence[tuple[str, str, Mapping[str, Any]]]) -> str:
    """Return one row a pair: difference of success rates with its interval, beside zero."""
    known = [pair for pair in pairs if pair[2]["difference"] is not None]
    reach = max([abs(v) for _, _, p in known for v in p["interval"]] or [0.1])
    reach = max(0.1, ceil(reach * 10) / 10)
    left = LABEL + 60
    inner = WIDTH - left - RIGHT - 40

    def place(value: float) -> float:
        return left + inner * (value + reach) / (2 * reach)

    bottom = 14 + 30 * len(known)
    parts: list[str] = []
    for value in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = place(value)
        parts.append(line(x, 6, x, bottom, "zero" if value == 0 else "axis"))
        parts.append(text(x, bottom + 16, f"{100 * value:+.0f}", anchor="middle", soft=True))
    for row, (first, second, pair) in enumerate(known):
        y = 22 + 30 * row
        low, high = pair["interval"]
        kind = "up" if low > 0 else "down" if high < 0 else "even"
        parts.append(text(left - 12, y + 5, f"{first} − {second}", anchor="end"))
        parts.append(line(place(low), y, place(high), y, f"interval {kind}"))
        parts.append(
            f'<circle cx="{place(pair["difference"]):.1f}" cy="{y}" r="6" class="{kind}"/>'
        )
        said = (
            f"{100 * pair['difference']:+.1f}  ({100 * low:+.1f} to {100 * high:+.1f}), "
            f"p = {pair['p']:.2g}"
        )
        parts.append(text(left + inner + 14, y + 5, said))
    return svg(WIDTH, bottom + 24, parts, name="Paired differences in points with 95 % interval")


def seed_grid(results: Sequence[Result], arms: Sequence[str]) -> str:
    """Return one cell for each seed (column) and arm (row): filled success, open failure."""
    seeds = sorted({r.seed for r in results})
    found = {(r.arm, r.seed): r for r in results}
    inner = WIDTH - LABEL
    columns = min(len(seeds), 100)
    pitch = min(20.0, inner / max(1, columns))
    side = max(4.0, pitch - 2.0)
    parts: list[str] = []
    y = 0.0
    for begin in range(0, len(seeds), columns or 1):
        block = seeds[begin : begin + columns]
        for arm in arms:
            parts.append(text(LABEL - 12, y + side - 1, arm, anchor="end", soft=True))
            for column, seed in enumerate(block):
                parts.append(_cell(found.get((arm, seed)), seed, LABEL + pitch * column, y, side))
            y += max(side + 2, 16)
        parts.append(text(LABEL, y + 11, f"seed {block[0]}", soft=True))
        if len(block) > 8:
            end = LABEL + pitch * len(block) - 2
            parts.append(text(end, y + 11, f"seed {block[-1]}", anchor="end", soft=True))
        y += 24
    return svg(WIDTH, y, parts, name="Outcome of every seed under every arm")


def _cell(result: Result | None, seed: int, x: float, y: float, side: float) -> str:
    if result is None:
        kind, said, inset = "missing", "not run", 0.0
    elif result.succeeded:
        kind, said, inset = "success", "success", 0.0
    elif result.outcome is Outcome.ERROR:
        kind, said, inset = "error", "error", side / 4
    else:
        # An open square: told from success without colour.
        kind, said, inset = "failure", str(result.outcome), 0.6
    size = side - 2 * inset
    return (
        f'<rect x="{x + inset:.1f}" y="{y + inset:.1f}" width="{size:.1f}" height="{size:.1f}" '
        f'class="{kind}"><title>seed {seed}: {said}</title></rect>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers between two bounds."""
    span = high - low
    step = 10 ** floor(log10(span / 4)) if span > 0 else 1.0
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 5) if span > 0 else 1
    first = ceil(low / step - 1e-9)
    return [step * i for i in range(first, floor(high / step + 1e-9) + 1)]


class Axes:
    """A plot of scores over time: maps to pixels and draws its frame."""

    def __init__(
        self, *, width: float, height: float, span: float, low: float, high: float
    ) -> None:
        if high <= low:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.span = low, high, max(span, 1e-6)
        self.width, self.height = width, height
        self.left, self.inner = 46.0, width - 66.0

    def x(self, time: float) -> float:
        """Return the column of a time [s]."""
        return self.left + self.inner * min(1.0, time / self.span)

    def y(self, score: float) -> float:
        """Return the row of a score."""
        return 8 + (self.height - 30) * (self.high - score) / (self.high - self.low)

    def frame(self) -> list[str]:
        """Return axes and their numbers."""
        parts: list[str] = []
        for value in ticks(self.low, self.high):
            parts.append(
                line(self.left, self.y(value), self.left + self.inner, self.y(value), "axis")
            )
            parts.append(
                text(self.left - 6, self.y(value) + 4, f"{value:.3g}", anchor="end", soft=True)
            )
        for value in ticks(0.0, self.span):
            parts.append(
                text(self.x(value), self.height - 4, f"{value:g} s", anchor="middle", soft=True)
            )
        return parts


Decisions = Sequence[Mapping[str, Any]]


def score_bounds(decisions: Decisions) -> tuple[float, float] | None:
    """Return the lowest and highest finite score, or None if there is none."""
    scores = [s for d in decisions for s in d["scores"] if s is not None and isfinite(s)]
    return (min(scores), max(scores)) if scores else None


def candidate_plot(
    decisions: Decisions, *, span: float, bounds: tuple[float, float], width: float = 320.0
) -> str:
    """Return every candidate's score along time, the chosen one marked and joined.

    Args:
        decisions: One entry a choice: time [s], scores (None where not given), choice.
        span: Time at the right edge [s].
        bounds: Lowest and highest score of the plot.
        width: Of the drawing [px].
    """
    axes = Axes(width=width, height=150.0, span=span, low=bounds[0], high=bounds[1])
    parts, chosen = axes.frame(), list[str]()
    for entry in decisions:
        x = axes.x(entry["time"])
        for index, score in enumerate(entry["scores"]):
            if score is None:
                continue
            if index == entry["choice"]:
                chosen.append(f"{x:.1f},{axes.y(score):.1f}")
            else:
                parts.append(
                    f'<circle cx="{x:.1f}" cy="{axes.y(score):.1f}" r="2" class="candidate"/>'
                )
    parts.append(f'<polyline points="{" ".join(chosen)}" class="path"/>')
    for point in chosen:
        cx, cy = point.split(",")
        parts.append(f'<circle cx="{cx}" cy="{cy}" r="3.2" class="chosen"/>')
    parts.append(
        f'<line x1="{axes.left}" y1="4" x2="{axes.left}" y2="{axes.height - 22:g}" class="cursor" '
        f'data-left="{axes.left:g}" data-width="{axes.inner:g}" data-span="{span:g}"/>'
    )
    return svg(width, 150.0, parts, name="Scores of the candidates along time, the chosen marked")


def score_paths(episodes: Sequence[tuple[bool, Decisions]]) -> str:
    """Return the chosen score along time, one line an episode: solid success, dashed failure."""
    every = [d for _, decisions in episodes for d in decisions]
    chosen = [(d["time"], d["scores"][d["choice"]]) for d in every]
    scores = [s for _, s in chosen if s is not None]
    if not scores:
        return ""
    span = max(t for t, _ in chosen) or 1.0
    axes = Axes(width=WIDTH, height=240.0, span=span, low=min(scores), high=max(scores))
    parts = axes.frame()
    for succeeded, decisions in episodes:
        points = [
            f"{axes.x(d['time']):.1f},{axes.y(d['scores'][d['choice']]):.1f}"
            for d in decisions
            if d["scores"][d["choice"]] is not None
        ]
        kind = "won" if succeeded else "lost"
        parts.append(f'<polyline points="{" ".join(points)}" class="{kind}"/>')
    return svg(WIDTH, 240.0, parts, name="Score of the chosen candidate along time")
