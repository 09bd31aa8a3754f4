"""Copies searches into Optuna's own tables of the same database, where `optuna-dashboard` finds them.

kdx reads none of these copies. A trial that has ended is added once, by its number, so that a copy that was broken off
is completed the next time.
"""

from collections.abc import Sequence
from dataclasses import replace

from optuna.storages import RDBStorage
from optuna.study import create_study

from kdx.errors import KdxError
from kdx.grid.tuning import Space
from kdx.tune.known_trial import KnownTrial
from kdx.tune.sampling import direction_of, frozen, silently
from kdx.tune.search import Searching
from kdx.vocabulary import Direction


def copy_searches(search: Searching) -> None:
    """Add the trials that have ended to the study of each search, which is named for the sweep and the cell.

    Raises:
        KdxError: the tables were made by an Optuna whose tables this one cannot use.
    """
    plan = search.plan
    url, engine_arguments = search.database.url()
    with silently():
        try:
            storage = RDBStorage(url, engine_kwargs=dict(engine_arguments))
        except RuntimeError as error:
            raise KdxError(
                "Optuna's own tables in this database are of another version of Optuna",
                hint="optuna storage upgrade --storage URL upgrades them; kdx itself needs none of them",
            ) from error
        try:
            for cell in {cell.search.id: cell for cell in plan.cells if cell.search}.values():
                assert cell.search is not None
                labels = ", ".join(f"{axis} {value}" for axis, value in cell.labels.items())
                name = " ".join(filter(None, (f"{plan.name}:" if labels else plan.name, labels)))
                trials = search.trials(cell.search.id)
                add(storage, f"{name} ({cell.search.id[:8]})", cell.spec.selection[1], cell.search.space, trials)
        finally:
            storage.remove_session()
            storage.engine.dispose()


def add(storage: RDBStorage, name: str, direction: Direction, space: Space, trials: Sequence[KnownTrial]) -> None:
    """Add the trials that a study lacks.

    Args:
        trials: all that have ended, in the order of their numbers.
    """
    study = create_study(storage=storage, study_name=name, direction=direction_of(direction), load_if_exists=True)
    there = len(study.get_trials(deepcopy=False))
    study.add_trials([frozen(replace(trial, attributes={}), space) for trial in trials[there:]])
