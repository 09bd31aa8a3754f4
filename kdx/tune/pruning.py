"""Says whether a trial is to end early, as a pure function of its own curve and of the trials of the rounds before.

A worker asks after each validation, and `ended_early` asks the same of a whole curve: a run that another grid has
trained to its end counts as this search would have ended it.
"""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, WilcoxonPruner

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.tune.study import silently, study_of

_STARTUP = 5  # completed trials before the median is asked, as Optuna's own default has it
_P = 0.1  # of the signed-rank test, likewise


def ended_early(rivals: Rivals, curve: Mapping[int, float]) -> int | None:
    """The first place of the curve at which the trial ends; None: it does not.

    Args:
        curve: optimiser step → validation score, of all validations but the last of a whole run; for the signed-rank
            test, place of the tuning seed → score.
    """
    if rivals.pruner is Pruner.NONE or not curve:
        return None
    with silently():
        study = study_of(rivals.search, rivals.direction, {}, (), pruner=_pruner(rivals))
        for one in rivals.trials:
            _replay(study, one)
        for _ in range(len(rivals.trials), rivals.number):
            # Those of its own round, of which nothing is known yet.
            _begin(study)
        return _ends(study, curve)


def _replay(study: optuna.Study, one: KnownTrial) -> None:
    """Adds a trial that has ended. A pruner keeps notes in trials while it is asked, so it is asked again."""
    number = _begin(study)
    for place, at in zip(one.curve, _places(study.pruner, one.curve), strict=True):
        _report(study, number, at, one.curve[place])
    value = one.value
    state = {
        TrialState.COMPLETED: optuna.trial.TrialState.COMPLETE,
        TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    }.get(one.state or TrialState.FAILED, optuna.trial.TrialState.FAIL)
    if value is None or value != value:
        state = optuna.trial.TrialState.FAIL
    values = None if state is optuna.trial.TrialState.FAIL else [value]
    study._storage.set_trial_state_values(number, state, values)  # type: ignore[arg-type]


def _ends(study: optuna.Study, curve: Mapping[int, float]) -> int | None:
    number = _begin(study)
    for (place, value), at in zip(curve.items(), _places(study.pruner, curve), strict=True):
        if _report(study, number, at, value):
            return place
    return None


def _begin(study: optuna.Study) -> int:
    """The id of a new trial, by which the storage has it."""
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING))
    return study.get_trials(deepcopy=False)[-1]._trial_id


def _report(study: optuna.Study, trial_id: int, at: int, value: float) -> bool:
    study._storage.set_trial_intermediate_value(trial_id, at, value)
    return study.pruner.prune(study, study._storage.get_trial(trial_id))


def _places(pruner: BasePruner, curve: Mapping[int, float]) -> list[int]:
    """Hyperband's resource is the number of validations; the others compare at the same step."""
    return list(range(1, len(curve) + 1)) if isinstance(pruner, HyperbandPruner) else list(curve)


def _pruner(rivals: Rivals) -> BasePruner:
    match rivals.pruner:
        case Pruner.NONE:
            return NopPruner()
        case Pruner.MEDIAN:
            return MedianPruner(n_startup_trials=_STARTUP)
        case Pruner.HYPERBAND:
            return HyperbandPruner(min_resource=1, max_resource=max(rivals.validations, 1))
        case Pruner.WILCOXON:
            return WilcoxonPruner(p_threshold=_P)


def why(rivals: Rivals, at: str) -> str:
    """The reason of a run that ends early, in one line."""
    return f"pruned by a search at {at}: {rivals.pruner} over {len(rivals.trials)} trials"


class Judge:
    """Judges a run of a trial while it is trained."""

    def __init__(self, text: str, so_far: Mapping[int, float]) -> None:
        """Takes the text of its rivals, and what of its curve is recorded from attempts before."""
        self._rivals = Rivals.of(text)
        self._curve: dict[int, Any] = dict(so_far)

    def why_pruned(self, step: int, score: float) -> str | None:
        """Why it ends after this validation; None: it goes on."""
        self._curve[step] = score
        curve = {at: one for at, one in sorted(self._curve.items()) if at <= step}
        return why(self._rivals, f"step {step}") if ended_early(self._rivals, curve) == step else None
