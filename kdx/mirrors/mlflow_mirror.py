"""MLflow: an experiment for each sweep, on the server or in the store that MLFLOW_TRACKING_URI names."""

import logging
import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from mlflow import MlflowClient, get_tracking_uri
from mlflow.entities import Metric, Param, RunTag
from mlflow.store.db import utils as database_store

from kdx.mirrors.interfaces import Known, Mirror, MirroredRun, Point
from kdx.store.records import RunState
from kdx.store.refusals import without_password

_MOST_METRICS, _MOST_PARAMS, _LONGEST = 1000, 100, 6000
"""What MLflow takes in one batch, and of one value."""


class MLflow(Mirror):
    """Writes through MLflow's client; `mlflow ui` shows it."""

    def __init__(self, beside: Path) -> None:
        self.place = without_password(get_tracking_uri())
        with _impatient():
            self._client = MlflowClient()
            self._client.search_experiments(max_results=1)
        self._ids: dict[int, str] = {}

    def begin(self, run: MirroredRun) -> Known:
        experiment = self._experiment(run.sweep)
        there = self._client.search_runs([experiment], f"tags.`kdx.key` = '{run.key}'", max_results=1)
        if there:
            info = there[0].info
            self._client.update_run(info.run_id, status="RUNNING")
            known = {name: self._client.get_metric_history(info.run_id, name) for name in there[0].data.metrics}
        else:
            info = self._client.create_run(experiment, run_name=run.name, tags={"kdx.key": run.key}).info
            params = [Param(name, str(value)[:_LONGEST]) for name, value in run.settings.items()]
            for at in range(0, len(params), _MOST_PARAMS):
                self._client.log_batch(info.run_id, params=params[at : at + _MOST_PARAMS])
            known = {}
        self._ids[run.id] = info.run_id
        steps = {name: max(metric.step for metric in history) for name, history in known.items() if history}
        return lambda name: steps.get(_allowed(name), -1)

    def write(self, run: MirroredRun, points: Collection[Point]) -> None:
        now = int(time.time() * 1000)
        metrics = [Metric(_allowed(point.name), point.value, now, point.step) for point in points]
        for at in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self._ids[run.id], metrics=metrics[at : at + _MOST_METRICS])

    def end(self, run: MirroredRun, state: RunState) -> None:
        status = {RunState.COMPLETED: "FINISHED", RunState.PRUNED: "FINISHED", RunState.CANCELLED: "KILLED"}
        known = self._ids.pop(run.id)
        self._client.log_batch(known, tags=[RunTag("kdx.state", state.value)])
        self._client.set_terminated(known, status.get(state, "FAILED"))

    def _experiment(self, name: str) -> str:
        there = self._client.get_experiment_by_name(name)
        return there.experiment_id if there else self._client.create_experiment(name)


@contextmanager
def _impatient() -> Iterator[None]:
    """Keep MLflow from trying for minutes to reach a server or a file that is not there.

    Later requests have MLflow's usual patience, since servers limit the rate of requests.
    """
    logging.getLogger(database_store.__name__).setLevel(logging.ERROR)  # each retry is a warning of four lines
    database_store.MAX_RETRY_COUNT = 2
    settings = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
    unset = settings.keys() - os.environ.keys()
    os.environ.update({name: settings[name] for name in unset})
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]


def _allowed(name: str) -> str:
    """A metric's name as MLflow takes it, which knows no `=`: `test/bleu/source-words:5-8`."""
    return re.sub(r"[^\w\-. :/]", ":", name)
