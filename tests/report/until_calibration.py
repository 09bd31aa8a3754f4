"""How often a rule that adds seeds errs, and what it saves, by simulation: `python tests/report/until_calibration.py`.

Each draw goes through kdx's own functions: `contrast` for each comparison at each look, `until_decided` for the looks.
Several cells are compared with one baseline, by Holm's correction, from 3 to 12 seeds. A false verdict is a difference
where there is none, or an equality within a margin that is not there; of several comparisons, in any.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, hypot, sqrt

import numpy as np

from kdx.report.statistics.estimates import contrast, summarise
from kdx.report.statistics.looks import Look
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.multiple_comparisons import Followed, until_decided
from kdx.tasks import TASKS

FIRST, LAST = 3, 12


@dataclass(frozen=True)
class Scores:
    """How the scores of a baseline and of several cells scatter."""

    name: str
    cells: int = 1
    spread: float = 1.0
    """Standard deviation of the cells, where that of the baseline is 1."""
    baseline: float = 1.0
    """That of the baseline."""
    shared: float = 0.0
    """Correlation of cells that have a seed in common."""
    heavy: bool = False
    """Whether scores have the tails of Student's t with 3 degrees of freedom."""
    diverging: float = 0.0
    """Share of runs that diverge."""
    perplexity: bool = False
    """Whether scores are perplexities, compared in nats; the spread is of their logarithm, in percent."""


NULLS = (
    Scores("one cell"),
    Scores("one cell, 3 times as noisy", spread=3),
    Scores("one cell, 8 times as noisy", spread=8),
    Scores("one cell, the baseline 8 times", baseline=8),
    Scores("one cell, seeds correlate by 0.6", shared=0.6),
    Scores("one cell, heavy tails", heavy=True),
    Scores("one cell, 8 times, heavy tails", spread=8, heavy=True),
    Scores("one cell, a third diverge", diverging=0.3),
    Scores("one cell, 8 times, a third diverge", spread=8, diverging=0.3),
    Scores("one cell, perplexities, 8 times", spread=8, perplexity=True),
    Scores("five cells", cells=5),
    Scores("five cells, 3 times as noisy", cells=5, spread=3),
    Scores("five cells, 8 times as noisy", cells=5, spread=8),
    Scores("five cells, the baseline 8 times", cells=5, baseline=8),
    Scores("five cells, 3 times, correlated", cells=5, spread=3, shared=0.6),
    Scores("five cells, 8 times, heavy tails", cells=5, spread=8, heavy=True),
    Scores("five perplexities, 3 times", cells=5, spread=3, perplexity=True),
    Scores("twelve cells, 8 times as noisy", cells=12, spread=8),
)
EFFECTS = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Differences in standard deviations over seeds."""


def drawn(scores: Scores, effect: float, rng: np.random.Generator) -> list[list[float | None]]:
    """Scores by seed, of the baseline first; None where a run diverges."""
    shape = (scores.cells + 1, LAST)
    noise = rng.standard_t(3, shape) / sqrt(3) if scores.heavy else rng.normal(size=shape)
    noise = sqrt(scores.shared) * rng.normal(size=LAST) + sqrt(1 - scores.shared) * noise
    spread = np.array([scores.baseline] + [scores.spread] * scores.cells)
    means = np.array([0.0] + [effect] * scores.cells)
    values = means[:, None] + spread[:, None] * noise
    lost = rng.random(shape) < scores.diverging
    if scores.perplexity:
        # On the scale on which kdx compares them.
        on_scale = Metric("perplexity", TASKS.definition("prediction").metrics["perplexity"]).on_scale
        values = np.array([[on_scale(exp(3 + each / 100)) or 0.0 for each in row] for row in values])
    return [
        [None if gone else float(x) for x, gone in zip(*row, strict=True)] for row in zip(values, lost, strict=True)
    ]


def followed(scores: Scores, effect: float, rng: np.random.Generator, margin: float = 0.0) -> list[Followed]:
    """One draw, all of whose seeds have ended; with a margin, equality alone decides."""
    baseline, *cells = drawn(scores, effect, rng)

    def test(index: int, look: Look) -> tuple[float, float] | None:
        values = [[x for x in row[: look.n] if x is not None] for row in (cells[index], baseline)]
        if not all(values):
            return None
        first, other = map(summarise, values)
        assert first and other
        estimate = contrast([(1.0, first), (-1.0, other)], look=look)
        if estimate is None:
            return 1.0, 1.0
        return (1.0, estimate.p_equivalent(margin)) if margin else (estimate.p, 1.0)

    return until_decided(FIRST, LAST, [LAST] * scores.cells, test)


def false_verdicts(scores: Scores, draws: int, rng: np.random.Generator) -> float:
    """Share of draws in which some cell is told from a baseline that it equals."""
    return sum(any(each.decided for each in followed(scores, 0.0, rng)) for _ in range(draws)) / draws


def false_equalities(scores: Scores, draws: int, rng: np.random.Generator) -> float:
    """Share of draws in which a cell that is worse by the margin counts as equal."""
    # Two standard deviations of a difference of two scores, which twelve seeds can tell from none.
    margin = 2.0 * hypot(scores.baseline, scores.spread)
    return sum(followed(scores, -margin, rng, margin)[0].decided for _ in range(draws)) / draws


def saved(scores: Scores, effect: float, draws: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Share of comparisons that are decided, mean seeds of a cell, and mean seeds of the baseline."""
    decided, seeds, of_baseline = 0, 0, 0
    for _ in range(draws):
        values = followed(scores, effect, rng)
        decided += sum(it.decided for it in values)
        seeds += sum(it.n for it in values)
        of_baseline += max(it.n for it in values)
    return decided / draws / scores.cells, seeds / draws / scores.cells, of_baseline / draws


def error(draws: int, rate: float = 0.05) -> float:
    """Monte-Carlo standard error of a rate."""
    return sqrt(rate * (1 - rate) / draws)


def lines(draws: int, seed: int = 0) -> Iterator[str]:
    """Every rate, as a table."""
    rng = np.random.default_rng(seed)
    yield f"false verdicts, all cells equal (± {100 * error(draws):.1f} if 5%)"
    for scores in NULLS:
        yield f"  {scores.name:40} {100 * false_verdicts(scores, draws, rng):5.1f}%"
    yield "false equalities, one cell worse by the margin"
    for scores in NULLS:
        if scores.cells == 1 and not scores.perplexity:
            yield f"  {scores.name:40} {100 * false_equalities(scores, draws, rng):5.1f}%"
    yield "seeds of a cell, and of the baseline, of 12; comparisons that are decided"
    for cells in (1, 5):
        for effect in EFFECTS:
            decided, seeds, of_baseline = saved(Scores("", cells=cells), effect, max(100, draws // 5), rng)
            yield (
                f"  {cells} cells, {effect:3.1f} standard deviations apart: {seeds:5.1f} and {of_baseline:5.1f},"
                f" {100 * decided:5.1f}% decided"
            )


if __name__ == "__main__":
    drawn_from = int(os.environ.get("SEED", np.random.SeedSequence().entropy % 2**32))  # type: ignore[operator]
    print(f"SEED={drawn_from}")
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, drawn_from):
        print(line, flush=True)
