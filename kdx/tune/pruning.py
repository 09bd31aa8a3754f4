"""Decides whether a trial is to end early, as a pure function of its own curve and of the trials of the rounds before.

A worker asks after each validation; the signed-rank test asks after each tuning seed.
"""

from collections.abc import Iterator, Mapping

from optuna import Study, Trial
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, WilcoxonPruner

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.tune.sampling import STATES, silently, study_of

_STARTUP = 5  # completed trials before the median is asked, as Optuna's own default has it
_P = 0.1  # of the signed-rank test, likewise


def ended_early(rivals: Rivals, curve: Mapping[int, float]) -> int | None:
    """Return the first place of the curve at which the trial ends; None if it does not.

    Args:
        curve: optimiser step → validation score, of all validations but the last of a whole run; for the signed-rank
            test, place of the tuning seed → score.
    """
    if rivals.pruner is Pruner.NONE or not curve:
        return None
    with silently():
        study = study_of(rivals.search, rivals.direction, {}, (), pruner=_pruner(rivals))
        for trial in rivals.trials:
            _replay(study, trial)
        for _ in range(len(rivals.trials), rivals.number):
            study.ask()  # a trial of its own round, of which nothing is known yet
        return next((place for place, ends in _reported(study.ask(), curve) if ends), None)


def _replay(study: Study, known: KnownTrial) -> None:
    """Add a trial that has ended. A pruner keeps notes in trials while it is asked, so it is asked again."""
    trial = study.ask()
    for _ in _reported(trial, known.curve):
        pass
    if known.state is TrialState.COMPLETED and known.value is not None and known.value == known.value:
        study.tell(trial, known.value)
    else:
        study.tell(trial, state=STATES[TrialState.PRUNED if known.state is TrialState.PRUNED else TrialState.FAILED])


def _reported(trial: Trial, curve: Mapping[int, float]) -> Iterator[tuple[int, bool]]:
    """Report a curve, and yield each place of it with whether the trial is to end there."""
    for count, (place, value) in enumerate(curve.items(), 1):
        # Hyperband's resource is the number of validations; the others compare at the same step.
        trial.report(value, count if isinstance(trial.study.pruner, HyperbandPruner) else place)
        yield place, trial.should_prune()


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
    """Return the reason of a run that ends early, in one line."""
    return f"pruned by a search at {at}: {rivals.pruner} over {len(rivals.trials)} trials"


class Judge:
    """Judges a run of a trial while it is trained."""

    def __init__(self, text: str, so_far: Mapping[int, float]) -> None:
        """Take the text of its rivals, and the part of its curve that earlier attempts recorded."""
        self._rivals = Rivals.of(text)
        self._curve = dict(so_far)

    def why_pruned(self, step: int, score: float) -> str | None:
        """Return why the run ends after this validation; None if it does not."""
        self._curve[step] = score
        curve = {validated: value for validated, value in sorted(self._curve.items()) if validated <= step}
        return why(self._rivals, f"step {step}") if ended_early(self._rivals, curve) == step else None
