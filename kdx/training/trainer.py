"""How Lightning is set up: what it does, what it leaves to kdx, and in which order it reads batches."""

import logging
import warnings
from typing import Any
from unittest.mock import patch

import pytorch_lightning as lightning
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from pytorch_lightning.trainer.connectors import callback_connector
from torch.utils.data import DataLoader, Dataset, Sampler

from kdx.grid.sections import Training
from kdx.training.checkpoint import CheckpointFiles
from kdx.training.divergence import Finite
from kdx.training.lifecycle import DuringTest, Lifecycle
from kdx.training.module import TrainBatches
from kdx.vocabulary import Precision

_PRECISION: dict[Precision, Any] = {Precision.FP32: "32-true", Precision.BF16: "bf16-mixed"}


class _Batches(Dataset[Any]):
    """A map from the index of a batch in the whole run to the batch."""

    def __init__(self, batches: TrainBatches) -> None:
        self.batches = batches

    def __getitem__(self, index: int) -> Any:
        return self.batches.batch(index)


class _From(Sampler[int]):
    """Batch indices of the whole run from where it resumes; the length stays that of the whole, as Lightning counts."""

    def __init__(self, start: int, total: int) -> None:
        self.start, self.total = start, total

    def __iter__(self) -> Any:
        return iter(range(self.start, self.total))

    def __len__(self) -> int:
        return self.total


def training_batches(batches: TrainBatches, training: Training, start: int) -> DataLoader[Any]:
    """Return the batches of a run in their order, from batch `start` of the whole run on."""
    total = training.steps * training.accumulate
    return DataLoader(_Batches(batches), batch_size=None, sampler=_From(start, total), num_workers=0)


def trainer_of(
    training: Training, validate_every: int, lifecycle: Lifecycle, files: CheckpointFiles
) -> lightning.Trainer:
    """Return a trainer of one run on one device; `validate_every` counts optimiser steps."""
    return _quiet_trainer(
        training,
        max_epochs=1,
        max_steps=training.steps,
        accumulate_grad_batches=training.accumulate,
        # Counted within the run's one epoch: Lightning's count over epochs is one too high after a resume.
        val_check_interval=validate_every * training.accumulate,
        callbacks=[lifecycle, Finite(lifecycle.seed)],
        # Named explicitly: inside a Slurm job Lightning would otherwise take over its signals.
        plugins=[files, LightningEnvironment()],
        default_root_dir=files.folder,
    )


def evaluator_of(training: Training, during_test: DuringTest) -> lightning.Trainer:
    """Return a trainer that tests a trained model as that of `trainer_of` does, with the same arithmetic."""
    return _quiet_trainer(training, callbacks=[during_test], plugins=[LightningEnvironment()])


def _quiet_trainer(training: Training, **settings: Any) -> lightning.Trainer:
    """Return a trainer on one device, without Lightning's own logs, bars and warnings."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
    # Callbacks that installed packages offer would take part in a run unseen, and looking for them takes 10 ms.
    with patch.object(callback_connector, "_load_external_callbacks", return_value=[]):
        return lightning.Trainer(
            precision=_PRECISION[training.precision],
            # Named explicitly, so that the device that `environment` records is the one that is used.
            accelerator="cuda" if torch.cuda.is_available() else "cpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            **settings,
        )
