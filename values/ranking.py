"""How well a value ranks sibling chunks: candidates of one and the same state.

Axes: ``g`` groups (one state each), ``n`` candidates of a group. A value may tell good states from
bad ones and still not know which chunk to run, so everything here but ``auc`` looks inside groups.
"""

from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

Scores = Float[np.ndarray, "g n"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingReport:
    """How scores rank candidates whose true scores are known.

    Attributes:
        spearman: Rank correlation within a group, mean over groups.
        top1_gain: Share of the oracle's gain over a random choice that the best score gets.
        pairwise: Share of pairs of siblings in the right order.
        auc: How well scores of all groups tell success from failure; NaN without both.
        groups: Groups in which there was something to rank.
        of: All groups.
    """

    spearman: float
    top1_gain: float
    pairwise: float
    auc: float
    groups: int
    of: int

    def to_dict(self) -> dict[str, float | None]:
        """Return numbers ready for JSON, None for NaN."""
        return {k: None if np.isnan(v) else v for k, v in asdict(self).items()}


def informative(truth: Scores, *, margin: float = 0.0) -> Bool[np.ndarray, " g"]:
    """Return which groups differ by more than ``margin`` between best and worst."""
    return np.ptp(truth, axis=1) > margin


def spearman(scores: Scores, truth: Scores, *, margin: float = 0.0) -> float:
    """Return the mean over groups of the rank correlation of scores and truth.

    Ties share their mean rank. Groups without order in ``truth`` are left out; a group that the
    scores leave without order counts 0. NaN if no group is left.

    Source:
        Spearman, "The proof and measurement of association between two things", 1904.
    """
    kept = _kept(scores, truth, margin)
    if not kept.any():
        return float("nan")
    a, b = (_centred(rankdata(x[kept], axis=1)) for x in (scores, truth))
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return float(np.mean((a * b).sum(1) / np.where(norms > 0, norms, np.inf)))


def top1_gain(scores: Scores, truth: Scores) -> float:
    """Return what taking the best score gains over a random choice, as a share of the most.

    1 is the oracle, 0 chance, negative is worse than chance. Equal best scores share the choice.
    Sums over groups are divided, so that a group weighs as much as there is to gain in it. NaN if
    nothing is to be gained.
    """
    _check(scores, truth)
    best = scores == scores.max(axis=1, keepdims=True)
    chosen = (truth * best).sum(1) / best.sum(1)
    mean = truth.mean(axis=1)
    most = (truth.max(axis=1) - mean).sum()
    return float((chosen - mean).sum() / most) if most > 0 else float("nan")


def pairwise(scores: Scores, truth: Scores, *, margin: float = 0.0) -> float:
    """Return the share of sibling pairs in the right order; a tie in the scores counts half.

    Only pairs whose truth differs by more than ``margin`` count. NaN if there is none.
    """
    _check(scores, truth)
    i, j = np.triu_indices(truth.shape[1], k=1)
    wanted = truth[:, i] - truth[:, j]
    found = scores[:, i] - scores[:, j]
    counted = np.abs(wanted) > margin
    if not counted.any():
        return float("nan")
    right = 0.5 + 0.5 * np.sign(found[counted]) * np.sign(wanted[counted])
    return float(right.mean())


def auc(scores: Float[np.ndarray, "..."], success: Bool[np.ndarray, "..."]) -> float:
    """Return the chance that a success has the higher score than a failure; ties count half.

    NaN if one of the two never happens.

    Source:
        Mann and Whitney, "On a test of whether one of two random variables is stochastically
        larger than the other", 1947.
    """
    scores, success = np.ravel(scores), np.ravel(success).astype(bool)
    good, bad = int(success.sum()), int((~success).sum())
    if not good or not bad:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[success].sum() - good * (good + 1) / 2) / (good * bad))


def sibling_report(
    scores: Scores,
    truth: Scores,
    *,
    success: Bool[np.ndarray, "g n"] | None = None,
    margin: float = 0.0,
) -> SiblingReport:
    """Return all figures at once.

    Args:
        scores: What the value says.
        truth: What the oracle found.
        success: Which candidates led to success, for ``auc``.
        margin: Differences of truth up to this are no order.

    Raises:
        ValueError: If shapes differ or a score is not finite.
    """
    return SiblingReport(
        spearman=spearman(scores, truth, margin=margin),
        top1_gain=top1_gain(scores, truth),
        pairwise=pairwise(scores, truth, margin=margin),
        auc=float("nan") if success is None else auc(scores, success),
        groups=int(informative(truth, margin=margin).sum()),
        of=len(truth),
    )


def _centred(ranks: Scores) -> Scores:
    return ranks - ranks.mean(axis=1, keepdims=True)


def _kept(scores: Scores, truth: Scores, margin: float) -> Bool[np.ndarray, " g"]:
    _check(scores, truth)
    return informative(truth, margin=margin)


def _check(scores: Scores, truth: Scores) -> None:
    if scores.ndim != 2 or scores.shape != truth.shape:
        raise ValueError(
            f"scores of shape {scores.shape} do not go with truth of shape {truth.shape}; "
            "both need one row a group and one column a candidate"
        )
    if not (np.isfinite(scores).all() and np.isfinite(truth).all()):
        raise ValueError("a score is not finite, so it has no rank; leave that group out")
