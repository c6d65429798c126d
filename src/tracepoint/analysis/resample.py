"""How much the means of two groups of figures differ, and whether chance explains it: by resampling."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt
from random import Random
from statistics import NormalDist, pstdev, variance
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROUNDS = 4000
MANY = 64
#: How often a change may be shown where there is none.
RISK = 0.05


class MeanChange(NamedTuple):
    """How much larger the mean of one group is than that of another, and between which bounds.

    `chance` is how often groups that are made of the same figures at random differ as much.
    """

    change: float
    confidence: Bounds
    chance: float


def mean_change(
    before: Sequence[float], after: Sequence[float], n_tests: int = 1, seed: int = 1, risk: float = RISK
) -> MeanChange:
    """Return how the mean changed; `n_tests` is how many such questions are asked at once.

    The bounds are those of groups drawn again with replacement, of one figure fewer than there are: drawn in
    full number, small groups vary too little (Rao and Wu, 1988).  They are widened as Student's t is wider
    than a normal distribution, as what a few figures vary is not known well either.  `chance` compares all
    ways to divide the figures into two such groups, or ROUNDS of them.  Of more than MANY figures means of
    MANY parts are drawn, and where both groups have more the division is computed as normal, which it is
    then: a row of thousands of recordings costs no more.  Both groups have figures; equal ones with equal
    seeds have equal results.

    >>> mean_change([10, 11, 12, 13], [20, 21, 22, 23]).chance < 0.05
    True
    """
    draw = Random(seed)  # noqa: S311 - nothing is secret here
    change = _mean(after) - _mean(before)
    few = [_in_parts(side, draw) for side in (before, after)]
    found = sorted(_mean_again(few[1], draw) - _mean_again(few[0], draw) for _ in range(ROUNDS))
    tail = risk / n_tests / 2
    at, wider = int(tail * ROUNDS), _widening(before, after, tail)
    bounds = Bounds(*(change + (one - change) * wider for one in (found[at], found[-1 - at])))
    return MeanChange(change, bounds, _chance(before, after, abs(change), draw))


def least_chance(n_before: int, n_after: int) -> float:
    """Return the smallest `chance` that groups of these sizes can have.

    >>> least_chance(4, 4), least_chance(1, 19)
    (0.02857142857142857, 0.05)
    """
    return (2 if n_before == n_after else 1) / comb(n_before + n_after, n_before)


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures)


def _in_parts(figures: Sequence[float], draw: Random) -> Sequence[float]:
    """Return the figures, or of many the means of MANY parts that they are dealt out to at random."""
    if len(figures) <= MANY:
        return figures
    dealt = draw.sample(figures, len(figures))
    return [_mean(dealt[at::MANY]) for at in range(MANY)]


def _mean_again(figures: Sequence[float], draw: Random) -> float:
    return _mean(draw.choices(figures, k=max(len(figures) - 1, 1)))


def _widening(before: Sequence[float], after: Sequence[float], tail: float) -> float:
    """Return how much further out a tail of Student's t is than that of a normal distribution.

    Its degrees of freedom are those of Welch's test; its quantile is the expansion of Cornish and Fisher.
    """
    parts = [variance(side) / len(side) if len(side) > 1 else 0.0 for side in (before, after)]
    weights = [part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True) if part]
    if not weights:
        return 1.0
    nu = sum(parts) ** 2 / sum(weights)
    z = NormalDist().inv_cdf(1 - tail)
    first, second = (z**2 + 1) / 4, (5 * z**4 + 16 * z**2 + 3) / 96
    return 1 + first / nu + second / nu**2 + (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384 / nu**3


def _chance(before: Sequence[float], after: Sequence[float], change: float, draw: Random) -> float:
    """Return the share of divisions into two groups whose means differ at least as much."""
    figures, n = [*before, *after], min(len(before), len(after))
    n_rest = len(figures) - n
    if n > MANY:
        spread = pstdev(figures) * sqrt(len(figures) / (len(figures) - 1) * (1 / n + 1 / n_rest))
        return 2 * NormalDist().cdf(-change / spread) if spread else 1.0
    total, is_all = sum(figures), comb(len(figures), n) <= ROUNDS
    drawn = (draw.sample(figures, n) for _ in range(ROUNDS))
    sums: Iterable[float] = map(sum, combinations(figures, n) if is_all else drawn)
    # Sums in another order differ in their last bits.
    enough = change - 1e-9 * max(map(abs, figures))
    differ = [abs(part / n - (total - part) / n_rest) >= enough for part in sums]
    # The division that was found is one of those that were not drawn.
    return (sum(differ) + (not is_all)) / (len(differ) + (not is_all))
