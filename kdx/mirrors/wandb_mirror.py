"""W&B: a project for each sweep; WANDB_MODE=offline keeps it on this machine until `wandb sync`."""

from collections.abc import Collection
from pathlib import Path

import wandb

from kdx.mirrors.interfaces import Known, Mirror, MirroredRun, Point, by_step, plain
from kdx.store.records import RunState


class WandB(Mirror):
    """Writes through W&B's client."""

    def __init__(self, beside: Path) -> None:
        self._runs: dict[int, wandb.Run] = {}

    def begin(self, run: MirroredRun) -> Known:
        there = wandb.init(
            project=plain(run.sweep),
            id=run.key,
            name=run.name,
            config=dict(run.settings),
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._runs[run.id] = there
        self.place = str(Path(there.sync_dir).parent) if there.offline else str(there.project_url)
        first = there.step
        # A test is of an earlier step than others that are there, and may be set again.
        return lambda name: -1 if name.startswith("test/") else first - 1

    def write(self, run: MirroredRun, points: Collection[Point]) -> None:
        there = self._runs[run.id]
        for step, metrics in by_step(points).items():
            if step < there.step:
                # W&B takes no step twice; a test is of an earlier one, that of the best validation.
                there.summary.update(metrics)
            else:
                there.log(metrics, step)

    def end(self, run: MirroredRun, state: RunState) -> None:
        self._runs.pop(run.id).finish(0 if state in (RunState.COMPLETED, RunState.PRUNED) else 1)
