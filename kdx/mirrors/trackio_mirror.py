"""trackio: a project for each sweep, in TRACKIO_DIR or on the server or Space that trackio's variables name."""

import os
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import trackio
from trackio import context_vars
from trackio.run import Run
from trackio.sqlite_storage import SQLiteStorage
from trackio.utils import TRACKIO_DIR

from kdx.mirrors.interfaces import Known, Mirror, MirroredRun, Point, by_step, plain
from kdx.store.records import RunState


class Trackio(Mirror):
    """Writes through trackio's client; `trackio show` shows it."""

    def __init__(self, beside: Path) -> None:
        self._runs: dict[int, Run] = {}
        server, _, _ = os.environ.get("TRACKIO_SERVER_URL", "").partition("?")  # after the ? is a secret
        self.place = os.environ.get("TRACKIO_SPACE_ID") or server or str(TRACKIO_DIR)
        # What trackio cannot write it says in a warning alone, from a thread of its own.
        self._recording = warnings.catch_warnings(record=True, action="always", category=UserWarning)

    def __enter__(self) -> Mirror:
        self._warned = self._recording.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._recording.__exit__(*ended)

    def begin(self, run: MirroredRun) -> Known:
        project, name = plain(run.sweep), f"{run.name} {run.key}"
        known: dict[str, int] = {}
        # What a server has of it is not asked: there a run that is continued has the same numbers twice.
        for row in SQLiteStorage.get_logs(project, name):
            known |= dict.fromkeys(row, row["step"])
        self._runs[run.id] = trackio.init(
            project,
            name,
            config=dict(run.settings),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        # trackio closes its current run once more when the process ends, and says so on standard output.
        context_vars.current_run.set(None)
        self._raise_what_it_warned()
        return lambda name: known.get(name, -1)

    def write(self, run: MirroredRun, points: Collection[Point]) -> None:
        for step, metrics in by_step(points).items():
            self._runs[run.id].log(metrics, step)
        self._raise_what_it_warned()

    def end(self, run: MirroredRun, state: RunState) -> None:
        self._runs.pop(run.id).finish()  # type: ignore[no-untyped-call]
        self._raise_what_it_warned()

    def _raise_what_it_warned(self) -> None:
        package = Path(trackio.__file__).parent
        for warning in self._warned:
            if isinstance(warning.message, UserWarning) and package in Path(warning.filename).parents:
                raise warning.message
