"""Draws the trials of a round with Optuna, as a pure function of the search and the results of the rounds before.

Optuna sees a search as a study in memory, which is made from kdx's records and never kept, so that kills, restarts and
the number of workers change nothing. Each trial has a fresh sampler, seeded by the search's seed and the trial's
number. What a sampler would carry from draw to draw (CMA-ES: its distribution) travels in the trial's attributes.
"""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, GridSampler, RandomSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from kdx.grid.tuning import Choice, Distribution, Sampler, Search, Space
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial
from kdx.vocabulary import Direction

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)

STATES = {
    TrialState.COMPLETED: OptunaState.COMPLETE,
    TrialState.PRUNED: OptunaState.PRUNED,
    TrialState.FAILED: OptunaState.FAIL,
    None: OptunaState.RUNNING,
}


def draw(search: Search, direction: Direction, known: Sequence[KnownTrial]) -> list[KnownTrial]:
    """Return the trials of the next round; none if there are as many as the search has.

    Args:
        known: all trials before, in the order of their numbers, each with its result.
    """
    tuning, first = search.tuning, len(known)
    drawn: list[KnownTrial] = []
    with silently():
        study = study_of(search.id, direction, search.space, known)
        for number in range(first, tuning.trials):
            if tuning.round_of(number) != tuning.round_of(first):
                break
            study.sampler = _sampler(search, number)
            trial = study.ask(distributions(search.space))
            attributes = study.get_trials(deepcopy=False)[number].system_attrs
            drawn.append(KnownTrial(number, external(search.space, trial.params), dict(attributes)))
    return drawn


def study_of(
    name: str,
    direction: Direction,
    space: Space,
    known: Iterable[KnownTrial],
    pruner: optuna.pruners.BasePruner | None = None,
) -> Study:
    """Return a study with these trials, whose numbers are 0, 1, …"""
    study = optuna.create_study(
        storage=optuna.storages.InMemoryStorage(),
        study_name=name,
        direction=direction_of(direction),
        sampler=RandomSampler(seed=0),
        pruner=pruner or optuna.pruners.NopPruner(),
    )
    for trial in known:
        study.add_trial(frozen(trial, space))
    return study


def frozen(trial: KnownTrial, space: Space) -> FrozenTrial:
    """Return a trial as `Study.add_trial` takes it."""
    state = STATES[trial.state]
    if state is OptunaState.COMPLETE and trial.value is None:
        state = OptunaState.FAIL
    return optuna.trial.create_trial(
        state=state,
        value=trial.value if state in (OptunaState.COMPLETE, OptunaState.PRUNED) else None,
        params=internal(space, trial.parameters),
        distributions=distributions(space),
        intermediate_values=dict(trial.curve),
        system_attrs=dict(trial.attributes),
    )


def direction_of(direction: Direction) -> StudyDirection:
    """Return a direction in Optuna's terms."""
    return StudyDirection.MAXIMIZE if direction is Direction.MAX else StudyDirection.MINIMIZE


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return a space in Optuna's terms, in the order of the names, on which no draw may depend otherwise."""
    return {name: _distribution(space[name]) for name in sorted(space)}


def _distribution(values: Distribution) -> BaseDistribution:
    if isinstance(values, Choice):
        return CategoricalDistribution([_plain(value) for value in values.values])
    if values.whole:
        return IntDistribution(int(values.low), int(values.high), log=values.log, step=int(values.step or 1))
    return FloatDistribution(values.low, values.high, log=values.log, step=values.step)


def _plain(value: Any) -> Any:
    """Return a value of a choice as a study has it: Optuna takes no list or mapping, so these become JSON."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def internal(space: Space, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a study has them."""
    choices = {name for name, values in space.items() if isinstance(values, Choice)}
    return {name: _plain(parameters[name]) if name in choices else parameters[name] for name in sorted(space)}


def external(space: Space, internal_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a cell has them."""
    parameters = {}
    for name in sorted(space):
        values, parameters[name] = space[name], internal_parameters[name]
        if isinstance(values, Choice):
            parameters[name] = {_plain(value): value for value in values.values}[parameters[name]]
    return parameters


def _sampler(search: Search, number: int) -> BaseSampler:
    """Return the sampler of one trial."""
    seed = _seed(search.tuning.seed, number)
    match search.tuning.sampler:
        case Sampler.GRID:
            values = {
                name: [_plain(value) for value in choice.values]
                for name, choice in sorted(search.space.items())
                if isinstance(choice, Choice)
            }
            # Its order is one shuffle for the whole search.
            return GridSampler(values, seed=_seed(search.tuning.seed, -1))
        case Sampler.RANDOM:
            return RandomSampler(seed=seed)
        case Sampler.TPE:
            # Trials of one round know of each other, so that they do not all go to one place.
            return TPESampler(seed=seed, constant_liar=True, multivariate=True, n_startup_trials=5)
        case Sampler.GP:
            return GPSampler(seed=seed, deterministic_objective=False, n_startup_trials=5)
        case Sampler.CMA_ES:
            return CmaEsSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)


def _seed(seed: int, number: int) -> int:
    """Return the seed of one trial: neighbouring seeds and numbers must not give the same stream."""
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:4], "big") % 2**31


@contextlib.contextmanager
def silently() -> Iterator[None]:
    """Hide Optuna's warnings of its own experimental parts, which mean nothing to a user of kdx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
