"""What a journal amounts to: rates of arms, paired differences, errors, latencies.

Times [s]. Errors are counted apart: they enter neither ``n`` nor ``k``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations, zip_longest
from typing import Any

from robot.statistics import count_pairs, mcnemar, paired_interval, percentile, wilson
from robot.trials import Key, Result

ENOUGH_SEEDS = 100


def latest(results: Iterable[Result]) -> dict[Key, Result]:
    """Return one result a key: the last one counted, else the last error."""
    kept: dict[Key, Result] = {}
    for result in results:
        before = kept.get(result.key)
        if before is None or not before.counted:
            kept[result.key] = result
    return kept


def summarise(
    results: Iterable[Result],
    *,
    arms: Sequence[str],
    tasks: Sequence[str],
    fingerprint: Mapping[str, Any],
    steered: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the summary of a run, ready for JSON.

    ``pairs`` holds both directions: ``pairs["a-b"]`` is the rate of a minus that of b on the
    seeds that both arms finished.

    Args:
        results: What was journaled, in any order.
        arms: Names of the arms, in the order of the report.
        tasks: Names of the tasks.
        fingerprint: What the run depends on.
        steered: Names of the arms in which something chooses among candidates.
    """
    kept = latest(results)
    episodes = list(kept.values())
    summary: dict[str, Any] = {
        **_block(episodes, arms),
        "errors": sum(not r.counted for r in episodes),
        "retries": sum(r.retries for r in episodes),
        "error_list": [
            {"arm": r.arm, "task": r.task, "seed": r.seed, "fault": r.fault, "error": r.error}
            for r in sorted(episodes, key=lambda r: r.key)
            if not r.counted
        ],
        "seeds": len({r.seed for r in episodes}),
        "notes": notes(episodes, arms),
        "fingerprint": dict(fingerprint),
    }
    summary["verdicts"] = verdicts(summary["pairs"], arms, steered)
    if len(tasks) > 1:
        summary["tasks"] = {
            task: _block([r for r in episodes if r.task == task], arms) for task in tasks
        }
    return summary


def _block(episodes: Sequence[Result], arms: Sequence[str]) -> dict[str, Any]:
    return {
        "arms": {arm: arm_summary([r for r in episodes if r.arm == arm]) for arm in arms},
        "pairs": {
            f"{a}-{b}": pair_summary(
                {r.key[1:]: r for r in episodes if r.arm == a},
                {r.key[1:]: r for r in episodes if r.arm == b},
            )
            for a, b in permutations(arms, 2)
        },
    }


def arm_summary(episodes: Sequence[Result]) -> dict[str, Any]:
    """Return rate and interval of one arm, with times and latencies beside them."""
    counted = [r for r in episodes if r.counted]
    k, n = sum(r.succeeded for r in counted), len(counted)
    latencies = [v for r in counted for v in r.latencies]
    reached = [r.time_to_success for r in counted if r.time_to_success is not None]
    fallbacks: Counter[str] = Counter()
    for result in counted:
        fallbacks.update(result.fallbacks)
    steps, inferences = sum(r.steps for r in counted), sum(r.inferences for r in counted)
    return {
        "k": k,
        "n": n,
        "rate": k / n if n else None,
        "interval": list(wilson(k, n)) if n else None,
        "success_once": sum(r.success_once for r in counted),
        "success_at_end": sum(r.success_at_end for r in counted),
        "outcomes": dict(sorted(Counter(str(r.outcome) for r in episodes).items())),
        "errors": len(episodes) - n,
        "time_to_success_s": percentile(reached, 0.5),
        "latency_s": {"p50": percentile(latencies, 0.5), "p99": percentile(latencies, 0.99)},
        "inferences": inferences,
        "steps_per_inference": steps / inferences if inferences else None,
        "fallbacks": dict(sorted(fallbacks.items())),
    }


def pair_summary(
    first: Mapping[tuple[str, int], Result], second: Mapping[tuple[str, int], Result]
) -> dict[str, Any]:
    """Return the paired difference of two arms, keyed by task and seed: first minus second."""
    common = [k for k in first if k in second and first[k].counted and second[k].counted]
    counts = count_pairs([(first[k].succeeded, second[k].succeeded) for k in common])
    table = {
        "n": counts.n,
        "both": counts.both,
        "only_first": counts.first,
        "only_second": counts.second,
        "neither": counts.neither,
    }
    if not common:
        return {"difference": None, "interval": None, "p": None, **table}
    return {
        "difference": counts.difference,
        "interval": list(paired_interval(counts)),
        "p": mcnemar(counts),
        **table,
    }


def verdict(first: str, second: str, pair: Mapping[str, Any], *, steered: bool = True) -> str:
    """Return in words what a paired difference shows: first against second."""
    if pair["difference"] is None:
        return f"{first} and {second} share no finished seed, so nothing is known."
    low, high = pair["interval"]
    if low > 0:
        said = f"{first} succeeds more often than {second}"
    elif high < 0:
        said = f"{first} succeeds less often than {second}"
    elif steered:
        said = f"no evidence that steering helps: {first} and {second} may be equal"
    else:
        said = f"no evidence of a difference between {first} and {second}"
    return (
        f"{said} ({100 * pair['difference']:+.1f} points, 95 % interval "
        f"{100 * low:+.1f} to {100 * high:+.1f}, p = {pair['p']:.2g}, {pair['n']} paired seeds)."
    )


def verdicts(
    pairs: Mapping[str, Mapping[str, Any]], arms: Sequence[str], steered: Sequence[str]
) -> list[dict[str, str]]:
    """Return what each steered arm shows against those before it, in words and as a direction.

    ``direction`` is ``better``, ``worse`` or ``even`` (the interval holds 0).
    """
    found: list[dict[str, str]] = []
    for second, first in combinations(arms, 2):
        if first not in steered:
            continue
        pair = pairs[f"{first}-{second}"]
        said = verdict(first, second, pair, steered=second not in steered)
        low, high = pair["interval"] or (-1.0, 1.0)
        direction = "better" if low > 0 else "worse" if high < 0 else "even"
        found.append({"said": said[0].upper() + said[1:], "direction": direction})
    return found


def notes(episodes: Sequence[Result], arms: Sequence[str]) -> list[str]:
    """Return what a reader must know before believing the numbers."""
    found: list[str] = []
    finished = [sum(r.counted for r in episodes if r.arm == arm) for arm in arms]
    fewest = min(finished, default=0)
    if fewest < ENOUGH_SEEDS:
        found.append(
            f"An arm has only {fewest} counted episodes. Rates of so few move by 10 points and "
            f"more between sets of seeds; use {ENOUGH_SEEDS} paired seeds or more to report."
        )
    errors = sum(not r.counted for r in episodes)
    if errors:
        found.append(
            f"{errors} episodes ended as errors of the machinery or of a raising policy. They are "
            "in neither k nor n; run the same command again to retry them."
        )
    for arm in arms:
        decided = [r for r in episodes if r.arm == arm and r.counted]
        fell = sum(sum(r.fallbacks.values()) for r in decided)
        asked = sum(r.inferences for r in decided)
        if asked and fell > 0.1 * asked:
            found.append(
                f"In arm {arm} the value did not decide in {fell} of {asked} inferences "
                "(late, NaN, constant or raising); the first candidate ran instead."
            )
    return found


def choose_seeds(
    results: Sequence[Result], *, first: str, second: str, count: int
) -> list[tuple[str, int]]:
    """Return the starts worth a look: those where two arms differ, in both directions by turns.

    Starts where they agree fill what is left, so that a page is never without a film.
    """
    ones = {r.key[1:]: r for r in results if r.arm == first and r.counted}
    others = {r.key[1:]: r for r in results if r.arm == second and r.counted}
    common = sorted(k for k in ones if k in others)
    gained = [k for k in common if ones[k].succeeded and not others[k].succeeded]
    lost = [k for k in common if others[k].succeeded and not ones[k].succeeded]
    turns = [k for pair in zip_longest(gained, lost) for k in pair if k is not None]
    same = [k for k in common if k not in set(turns)]
    return (turns + same)[: max(0, count)]
