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
from optuna.study import Study
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


def optuna_distribution(one: Distribution) -> BaseDistribution:
    """The same in Optuna's terms; of several values, their places in the list, for Optuna takes no list or mapping."""
    if isinstance(one, Choice):
        return CategoricalDistribution(list(range(len(one.values))))
    if one.whole:
        return IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return FloatDistribution(one.low, one.high, log=one.log, step=one.step)


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Those of a space, in the order of the names, on which no draw may depend otherwise."""
    return {name: optuna_distribution(space[name]) for name in sorted(space)}


def internal(space: Space, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a study holds them."""
    found = {}
    for name in sorted(space):
        one, value = space[name], parameters[name]
        found[name] = one.values.index(value) if isinstance(one, Choice) else value
    return found


def external(space: Space, internal_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a cell has them."""
    found = {}
    for name in sorted(space):
        one, value = space[name], internal_parameters[name]
        found[name] = one.values[int(value)] if isinstance(one, Choice) else value
    return found


def frozen(one: KnownTrial, space: Space, *, readable: bool = False) -> FrozenTrial:
    """A trial as `Study.add_trial` takes it.

    Args:
        readable: values of a choice as people read them, for a study that nobody draws from.
    """
    state = STATES[one.state]
    value = one.value
    if state is OptunaState.COMPLETE and value is None:
        state = OptunaState.FAIL
    return optuna.trial.create_trial(
        state=state,
        value=value if state in (OptunaState.COMPLETE, OptunaState.PRUNED) else None,
        params=_words(space, one.parameters) if readable else internal(space, one.parameters),
        distributions=_worded(space) if readable else distributions(space),
        intermediate_values=dict(one.curve),
        system_attrs={} if readable else dict(one.attributes),
    )


def _word(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def _words(space: Space, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _word(parameters[name]) if isinstance(one, Choice) else parameters[name] for name, one in space.items()
    }


def _worded(space: Space) -> dict[str, BaseDistribution]:
    return {
        name: CategoricalDistribution([_word(value) for value in one.values])
        if isinstance(one, Choice)
        else optuna_distribution(one)
        for name, one in space.items()
    }


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
        direction="maximize" if direction is Direction.MAX else "minimize",
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
