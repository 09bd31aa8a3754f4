"""Draws the trials of a round, as a pure function of the search and the results of the rounds before.

Each trial has a fresh sampler, seeded by the search's seed and the trial's number. What a sampler would carry from draw
to draw (CMA-ES: its distribution) travels in the trial's attributes.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, GridSampler, RandomSampler, TPESampler

from kdx.grid.tuning import Choice, Sampler, Search, Space
from kdx.tune.known_trial import KnownTrial
from kdx.tune.study import distributions, external, silently, study_of, word
from kdx.vocabulary import Direction


def draw(search: Search, direction: Direction, known: Sequence[KnownTrial]) -> list[KnownTrial]:
    """The trials of the next round; none if there are as many as the search has.

    Args:
        known: all trials before, in the order of their numbers, each with its result.
    """
    tuning, first = search.tuning, len(known)
    drawn: list[KnownTrial] = []
    with silently():
        for number in range(first, tuning.trials):
            if tuning.round_of(number) != tuning.round_of(first):
                break
            sampler = _sampler(tuning.sampler, search.space, _seed(tuning.seed, number), _seed(tuning.seed, -1))
            study = study_of(search.id, direction, search.space, [*known, *drawn], sampler)
            trial = study.ask(distributions(search.space))
            kept = study.get_trials(deepcopy=False)[number]
            drawn.append(KnownTrial(number, external(search.space, trial.params), dict(kept.system_attrs)))
    return drawn


def _seed(seed: int, number: int) -> int:
    """Of one trial: neighbouring seeds and numbers must not give the same stream."""
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:4], "big") % 2**31


def _sampler(kind: Sampler, space: Space, seed: int, seed_of_search: int) -> BaseSampler:
    match kind:
        case Sampler.GRID:
            # Its order is one shuffle for the whole search.
            places: dict[str, list[Any]] = {
                name: [word(value) for value in one.values]
                for name, one in sorted(space.items())
                if isinstance(one, Choice)
            }
            return GridSampler(places, seed=seed_of_search)
        case Sampler.RANDOM:
            return RandomSampler(seed=seed)
        case Sampler.TPE:
            # Trials of one round know of each other, so that they do not all go to one place.
            return TPESampler(seed=seed, constant_liar=True, multivariate=True, n_startup_trials=5)
        case Sampler.GP:
            return GPSampler(seed=seed, deterministic_objective=False, n_startup_trials=5)
        case Sampler.CMA_ES:
            return CmaEsSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)
