"""A training run's log as a picture."""

import json
from pathlib import Path


def read_log(path: Path) -> list[dict[str, float]]:
    """Return the lines of ``metrics.jsonl``; a torn last line is left out."""
    found: list[dict[str, float]] = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def draw_curves(log: Path, picture: Path) -> None:
    """Draw every loss over the steps, training and held-out, into a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = read_log(log)
    names = [n for n in dict.fromkeys(k for line in lines for k in line) if "/" not in n]
    names = [n for n in names if n not in ("step", "seconds", "rate")]
    held = {k for line in lines for k in line if k.startswith("held_out/")}
    names += [k.removeprefix("held_out/") for k in sorted(held)]
    names = list(dict.fromkeys(names))
    figure = Figure(figsize=(4 * min(3, max(1, len(names))), 3 * max(1, -(-len(names) // 3))))
    FigureCanvasAgg(figure)
    for i, name in enumerate(names):
        axes = figure.add_subplot(-(-len(names) // 3), min(3, len(names)), i + 1)
        positive = True
        for key, label in ((name, "training"), (f"held_out/{name}", "held out")):
            points = [(line["step"], line[key]) for line in lines if key in line]
            if points:
                axes.plot(*zip(*points, strict=True), label=label)
            positive &= all(value > 0 for _, value in points)
        axes.set_title(name)
        axes.set_xlabel("step")
        if positive:
            axes.set_yscale("log")
        axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=90)
