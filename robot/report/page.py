"""The report: one HTML file that holds everything it shows and asks nothing of the network."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

from robot.fingerprint import flatten
from robot.journal import write_whole
from robot.report import plots
from robot.report.theme import SCRIPT, STYLE
from robot.trials import Result

# More lines than this hide each other.
MOST_PATHS = 60


def write_report(
    *,
    out: Path,
    title: str,
    summary: Mapping[str, Any],
    results: Sequence[Result],
    decisions: Sequence[Mapping[str, Any]],
    films: Sequence[Result],
    steered: Sequence[str],
    judge: str = "",
) -> Path:
    """Write ``report.html`` into ``out`` and return its path.

    Args:
        out: Folder of the run.
        title: Headline.
        summary: What ``summary.json`` holds.
        results: One result for each trial.
        decisions: Lines of ``decisions.jsonl``; of a key written twice the last one holds.
        films: Results of the seeds that were run again with pictures.
        steered: Names of the arms in which something chooses among candidates.
        judge: The arm whose value scored the films of unsteered arms, so that they share a scale.

    Raises:
        JournalError: If the file cannot be written.
    """
    logged = {(d["arm"], d["task"], d["seed"]): d["decisions"] for d in decisions}
    body = [
        _head(title, summary, results),
        _verdicts(summary["verdicts"]),
        _notes(summary["notes"]),
        _rates(summary, results),
        _films(films, results, {*summary["arms"]} - {*steered} | {judge}),
        _scores(results, logged, steered),
        _errors(summary["error_list"]),
        _fingerprint(summary["fingerprint"]),
    ]
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        + "".join(body)
        + f"</main><script>{SCRIPT}</script></body></html>\n"
    )
    path = out / "report.html"
    write_whole(path, page)
    return path


def _head(title: str, summary: Mapping[str, Any], results: Sequence[Result]) -> str:
    tasks = {r.task: r.instruction for r in results if r.instruction}
    said = "; ".join(f"{name}: “{words}”" for name, words in tasks.items())
    counted = sum(r.counted for r in results)
    return (
        f"<h1>{escape(title)}</h1><p class='soft'>{escape(said)}</p>"
        f"<p class='soft'>{len(summary['arms'])} arms on {summary['seeds']} seeds, {counted} "
        f"episodes counted, {summary['errors']} errors, {summary['retries']} attempts retried. "
        "Intervals hold 95 %.</p>"
    )


def _verdicts(verdicts: Sequence[Mapping[str, str]]) -> str:
    return "".join(
        f"<div class='card verdict {v['direction']}'>{escape(v['said'])}</div>" for v in verdicts
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"<div class='card note'>{escape(note)}</div>" for note in notes)


def _rates(summary: Mapping[str, Any], results: Sequence[Result]) -> str:
    blocks: dict[str, Any] = summary.get("tasks") or {"": summary}
    if len(blocks) > 1:
        blocks = {"All tasks": summary, **blocks}
    parts = ["<h2>Success</h2>", _legend()]
    for task, block in blocks.items():
        arms = list(block["arms"])
        pairs = [(b, a, block["pairs"][f"{b}-{a}"]) for a, b in combinations(arms, 2)]
        mine = [r for r in results if task in ("", r.task)]
        parts.append(f"<h3>{escape(task)}</h3>" if task else "")
        parts.append(f"<div class='card'>{plots.success_bars(block['arms'])}</div>")
        if pairs:
            parts.append(
                "<p class='soft'>Paired differences on the same seeds, in points. An interval "
                "that crosses the line at 0 is no evidence of a difference.</p>"
                f"<div class='card'>{plots.differences(pairs)}</div>"
            )
        if mine:
            parts.append(f"<div class='card'>{plots.seed_grid(mine, arms)}</div>")
        parts.append(_table(block["arms"]))
    return "".join(parts)


def _legend() -> str:
    def square(kind: str, words: str) -> str:
        shape = f'<rect x="1" y="1" width="10" height="10" class="{kind}"/>'
        return f'<span><svg viewBox="0 0 12 12">{shape}</svg> {words}</span>'

    marks = (square("success", "success"), square("failure", "failure or timeout"))
    return f"<div class='key'>{''.join(marks)}{square('error', 'error (not counted)')}</div>"


def _table(arms: Mapping[str, Mapping[str, Any]]) -> str:
    titles = (
        "arm",
        "k/n",
        "held once",
        "held at end",
        "time to success",
        "latency p50",
        "p99",
        "steps per inference",
        "no decision",
        "errors",
    )
    rows: list[str] = []
    for name, arm in arms.items():
        fallbacks = ", ".join(f"{v} {k}" for k, v in arm["fallbacks"].items()) or "0"
        cells = (
            name,
            f"{arm['k']}/{arm['n']}",
            str(arm["success_once"]),
            str(arm["success_at_end"]),
            _seconds(arm["time_to_success_s"]),
            _milliseconds(arm["latency_s"]["p50"]),
            _milliseconds(arm["latency_s"]["p99"]),
            "-" if arm["steps_per_inference"] is None else f"{arm['steps_per_inference']:.1f}",
            fallbacks,
            str(arm["errors"]),
        )
        rows.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
    head = "".join(f"<th>{t}</th>" for t in titles)
    return f"<div class='card scroll'><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{1000 * value:.0f} ms"


def _films(films: Sequence[Result], results: Sequence[Result], judged: set[str]) -> str:
    """Return the films seed by seed; the arms that one value ``judged`` share a scale."""
    blocks: dict[tuple[str, int], list[Result]] = {}
    order = list(dict.fromkeys(r.arm for r in results))
    for film in sorted(films, key=lambda f: order.index(f.arm)):
        if film.film is not None:
            blocks.setdefault((film.task, film.seed), []).append(film)
    if not blocks:
        return ""
    before = {r.key: r for r in results}
    parts = [
        "<h2>Side by side</h2><p class='soft'>Seeds run once more with a camera, first those on "
        "which the arms differ. Below each film: the score of every candidate when a chunk was "
        "chosen, the one that ran joined by the line. An unsteered arm shows what the value "
        "thought of its only proposal.</p>"
    ]
    for (task, seed), shown in blocks.items():
        span = max(r.duration for r in shown)
        logged = [r.to_decision_line()["decisions"] for r in shown]
        scales = [judged if r.arm in judged else {r.arm} for r in shown]
        width = max(240.0, 1000.0 / len(shown))
        agree = len({r.succeeded for r in shown}) == 1
        figures = [
            _figure(film, mine, (span, width), _bounds(shown, logged, scale), before.get(film.key))
            for film, mine, scale in zip(shown, logged, scales, strict=True)
        ]
        said = "arms agree" if agree else "arms differ"
        parts.append(
            f"<div class='card' data-seed='{seed}'><div class='head'><h3>{escape(task)}, seed "
            f"{seed} <span class='soft'>({said})</span></h3><button>play all</button></div>"
            f"<div class='films'>{''.join(figures)}</div></div>"
        )
    return "".join(parts)


def _bounds(
    shown: Sequence[Result], logged: Sequence[plots.Decisions], scale: set[str]
) -> tuple[float, float] | None:
    same = zip(shown, logged, strict=True)
    return plots.score_bounds([d for r, mine in same if r.arm in scale for d in mine])


def _figure(
    shown: Result,
    decisions: plots.Decisions,
    size: tuple[float, float],
    bounds: tuple[float, float] | None,
    before: Result | None,
) -> str:
    """Return one film with its plot; ``size`` is the time [s] and width [px] of the plot."""
    film, (span, width) = shown.film, size
    if film is None:
        return ""
    kind = "yes" if shown.succeeded else "no" if shown.counted else "void"
    small = " class='small'" if film.width < 160 else ""
    plot = ""
    if bounds:
        plot = plots.candidate_plot(decisions, span=span, bounds=bounds, width=width)
    warning = ""
    if before is not None and before.outcome != shown.outcome:
        warning = (
            f"<p class='note card'>This episode ended as {before.outcome} in the run and as "
            f"{shown.outcome} here: something in it does not follow from its seed.</p>"
        )
    return (
        f"<figure{small}><figcaption><b>{escape(shown.arm)}</b><span class='tag {kind}'>"
        f"{shown.outcome} after {shown.duration:.1f} s</span></figcaption>"
        f"<video muted controls playsinline preload='auto' width='{film.width}' "
        f"height='{film.height}' src='data:video/mp4;base64,{b64encode(film.mp4).decode()}'>"
        f"</video>{plot}{warning}</figure>"
    )


def _scores(
    results: Sequence[Result],
    logged: Mapping[tuple[str, str, int], plots.Decisions],
    steered: Sequence[str],
) -> str:
    parts: list[str] = []
    for arm in steered:
        mine = [r for r in results if r.arm == arm and r.counted and logged.get(r.key)]
        plot = plots.score_paths([(r.succeeded, logged[r.key]) for r in mine[:MOST_PATHS]])
        if plot:
            count = min(len(mine), MOST_PATHS)
            parts.append(f"<h3>{escape(arm)} ({count} episodes)</h3><div class='card'>{plot}</div>")
    if not parts:
        return ""
    return (
        "<h2>Scores along time</h2><p class='soft'>Score of the candidate that ran, one line an "
        "episode: solid ended in success, dashed did not.</p>" + "".join(parts)
    )


def _errors(errors: Sequence[Mapping[str, Any]]) -> str:
    if not errors:
        return ""
    rows = "".join(
        f"<tr><td>{escape(e['arm'])}</td><td>{escape(e['task'])}</td><td>{e['seed']}</td>"
        f"<td>{escape(e['fault'])}</td><td class='text'>{escape(e['error'])}</td></tr>"
        for e in errors
    )
    return (
        "<h2>Errors</h2><div class='card scroll'><table><tr><th>arm</th><th>task</th><th>seed</th>"
        f"<th>fault of</th><th class='text'>what was raised</th></tr>{rows}</table></div>"
    )


def _fingerprint(fingerprint: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for section, content in fingerprint.items():
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td class='text'>{escape(str(value))}</td></tr>"
            for name, value in flatten(content).items()
        )
        opened = " open" if section in ("versions", "machine", "code") else ""
        parts.append(
            f"<details{opened}><summary>{escape(section)}</summary><table>{rows}</table></details>"
        )
    return (
        "<h2>Fingerprint</h2><p class='soft'>What the numbers depend on; `ambidex compare` names "
        f"what differs between two runs.</p><div class='card facts'>{''.join(parts)}</div>"
    )
