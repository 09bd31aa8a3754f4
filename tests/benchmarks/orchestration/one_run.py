"""The run that each tool sweeps: one optimiser step with validation and test, by Lightning with kdx's model and data.

It keeps nothing: what a tool keeps of it is the tool's.
"""

import logging
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import pytorch_lightning as lightning
from torch.utils.data import DataLoader

from kdx.data.corpus import load_corpus
from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training.determinism import fix_arithmetic, reseed
from kdx.training.trainer import training_batches
from kdx.vocabulary import Split
from tests.benchmarks.orchestration import GRID


@cache
def _cell() -> CellSpec:
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(GRID)
        return load_grid(grid).cells[0].spec


def one_run(seed: int) -> float:
    """Train and return the loss on the test split."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
    spec = _cell()
    fix_arithmetic(spec.training)
    reseed(seed, "weights")
    corpus = load_corpus(spec.task, spec.data)
    task = TASKS[spec.task]
    batches, module = task.batches(spec, corpus, seed), task.of(spec, corpus)
    trainer = lightning.Trainer(
        max_steps=spec.training.steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=os.devnull,
    )
    valid, test = (DataLoader(batches.evaluation[split], batch_size=None) for split in (Split.VALID, Split.TEST))
    trainer.fit(module, training_batches(batches.train, spec.training, 0), valid)
    trainer.test(module, test, verbose=False)
    return float(module.results["loss"])
