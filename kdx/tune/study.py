"""A search as Optuna sees it: a study in memory that is made from kdx's records and never kept.

So a draw and a verdict are functions of the records alone: kills, restarts and the number of workers change nothing.
"""

import contextlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from kdx.grid.tuning import Choice, Distribution, Space
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


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return a space in Optuna's terms, in the order of the names, on which no draw may depend otherwise."""
    return {name: _distribution(space[name]) for name in sorted(space)}


def _distribution(one: Distribution) -> BaseDistribution:
    if isinstance(one, Choice):
        return CategoricalDistribution([word(value) for value in one.values])
    if one.whole:
        return IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return FloatDistribution(one.low, one.high, log=one.log, step=one.step)


def word(value: Any) -> Any:
    """Return a value of a choice as a study has it: Optuna takes no list or mapping, so these become JSON."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def internal(space: Space, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a study has them."""
    return {
        name: word(parameters[name]) if isinstance(space[name], Choice) else parameters[name] for name in sorted(space)
    }


def external(space: Space, internal_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a cell has them."""
    found = {}
    for name in sorted(space):
        one, value = space[name], internal_parameters[name]
        found[name] = {word(each): each for each in one.values}[value] if isinstance(one, Choice) else value
    return found


def frozen(one: KnownTrial, space: Space) -> FrozenTrial:
    """Return a trial as `Study.add_trial` takes it."""
    state = STATES[one.state]
    value = one.value
    if state is OptunaState.COMPLETE and value is None:
        state = OptunaState.FAIL
    return optuna.trial.create_trial(
        state=state,
        value=value if state in (OptunaState.COMPLETE, OptunaState.PRUNED) else None,
        params=internal(space, one.parameters),
        distributions=distributions(space),
        intermediate_values=dict(one.curve),
        system_attrs=dict(one.attributes),
    )


def direction_of(direction: Direction) -> StudyDirection:
    """Return a direction in Optuna's terms."""
    return StudyDirection.MAXIMIZE if direction is Direction.MAX else StudyDirection.MINIMIZE


def study_of(
    name: str,
    direction: Direction,
    space: Space,
    known: Iterable[KnownTrial],
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
) -> Study:
    """A study with these trials, whose numbers are 0, 1, …"""
    study = optuna.create_study(
        storage=optuna.storages.InMemoryStorage(),
        study_name=name,
        direction=direction_of(direction),
        sampler=sampler or optuna.samplers.RandomSampler(seed=0),
        pruner=pruner or optuna.pruners.NopPruner(),
    )
    for one in known:
        study.add_trial(frozen(one, space))
    return study


@contextlib.contextmanager
def silently() -> Iterator[None]:
    """Optuna warns of its own experimental parts, which tells a user of kdx nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
