"""How near samplers come to the optimum of a known surface, and what a draw costs."""

import math
import statistics
import time
from typing import Any

from kdx.grid.tuning import DrawnRange, Sampler, Search, Tuning
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial
from kdx.tune.sampling import draw
from kdx.vocabulary import Direction

SEARCHES, TRIALS = 20, 30
SPACE = {
    "training.learning_rate": DrawnRange(low=1e-5, high=1e-1, log=True),
    "model.dropout": DrawnRange(low=0.0, high=0.5),
    "training.warmup": DrawnRange(low=1, high=2000, log=True),
}


def loss(rate: float, dropout: float, warmup: int) -> float:
    """A valley as learning rates have one, which bends where the warm-up is longer; 0 at best."""
    across = math.log10(rate) + 2.7 - 0.3 * (math.log10(warmup) - 2)
    return across**2 + 8 * (dropout - 0.15) ** 2 + 0.2 * (math.log10(warmup) - 2) ** 2


def measure() -> dict[str, Any]:
    """Sampler → the loss of its winner and the milliseconds of a draw: medians over searches of 30 trials."""
    found = {}
    for sampler in (Sampler.RANDOM, Sampler.TPE, Sampler.CMA_ES):  # a draw of GP takes seconds
        best, took = [], []
        for seed in range(SEARCHES):
            search = Search("0" * 32, "{}", SPACE, Tuning(trials=TRIALS, sampler=sampler, seed=seed))
            known: list[KnownTrial] = []
            while len(known) < TRIALS:
                begun = time.perf_counter()
                drawn = draw(search, Direction.MIN, known)
                took.append((time.perf_counter() - begun) / len(drawn))
                known += [_ended(one) for one in drawn]
            best.append(min(one.value for one in known if one.value is not None))
        found[sampler.value] = {
            "loss of the winner": round(statistics.median(best), 5),
            "milliseconds of a draw": round(statistics.median(took) * 1000, 2),
        }
    random = found[Sampler.RANDOM.value]["loss of the winner"]
    ratios = {name: round(one["loss of the winner"] / random, 3) for name, one in found.items()}
    return {"searches": SEARCHES, "trials": TRIALS, "samplers": found, "loss beside random": ratios}


def _ended(one: KnownTrial) -> KnownTrial:
    value = loss(*(one.parameters[name] for name in SPACE))
    return KnownTrial(one.number, one.parameters, one.attributes, TrialState.COMPLETED, value)
