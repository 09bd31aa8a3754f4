"""The callback of every test: that at the end of a run, and that of an evaluation later."""

from collections.abc import Callable
from typing import Any

import pytorch_lightning as lightning

from kdx.training.determinism import reseed
from kdx.training.stopping import Stopped, StopRequest


class DuringTest(lightning.Callback):
    """Stops on request, gives signs of life, and draws each batch's randomness from a seed and its index."""

    def __init__(self, seed: int, stop: StopRequest, alive: Callable[[], None]) -> None:
        """Takes the run's seed of dropout, and what is called before each batch."""
        self.seed, self.stop, self.alive = seed, stop, alive

    def on_test_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        # Lightning treats a test as a run of its own, and answers its SIGTERM with a SystemExit.
        self.stop.listen()

    def on_test_batch_start(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self.stop.asked:
            raise Stopped
        self.alive()
        reseed(self.seed, "test", batch_idx)
