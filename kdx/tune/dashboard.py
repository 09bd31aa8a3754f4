"""Copies searches into Optuna's own tables of the same database, where `optuna-dashboard` finds them.

They are copies: kdx reads none of it. A trial that has ended is added once, by its number, so that a copy which was
broken off is made good the next time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.storages import RDBStorage
from optuna.study import create_study

from kdx.errors import KdxError
from kdx.grid.tuning import Space
from kdx.tune.known_trial import KnownTrial
from kdx.tune.study import frozen, silently
from kdx.vocabulary import Direction


class Dashboard:
    """Optuna's tables of one database."""

    def __init__(self, url: str, engine_arguments: Mapping[str, Any]) -> None:
        """Takes what `kdx.store.backend.Database.url` gives; makes the tables where they are missing.

        Raises:
            KdxError: the tables were made by an Optuna whose tables this one cannot use.
        """
        try:
            with silently():
                self._storage = RDBStorage(url, engine_kwargs=dict(engine_arguments))
        except RuntimeError as error:
            raise KdxError(
                "Optuna's own tables in this database are of another version of Optuna",
                hint="optuna storage upgrade --storage URL upgrades them; kdx itself needs none of them",
            ) from error
        self._copied: dict[str, int] = {}

    def copy(self, name: str, direction: Direction, space: Space, trials: Sequence[KnownTrial]) -> int:
        """Adds the trials that a study lacks, and returns how many those were.

        Args:
            trials: all that have ended, in the order of their numbers.
        """
        if self._copied.get(name) == len(trials):
            return 0
        with silently():
            study = create_study(
                storage=self._storage,
                study_name=name,
                direction="maximize" if direction is Direction.MAX else "minimize",
                load_if_exists=True,
            )
            there = len(study.get_trials(deepcopy=False))
            study.add_trials([frozen(one, space, readable=True) for one in trials[there:]])
        self._copied[name] = len(trials)
        return max(len(trials) - there, 0)

    def close(self) -> None:
        self._storage.remove_session()
        self._storage.engine.dispose()
