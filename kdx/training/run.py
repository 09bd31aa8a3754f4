"""Trains one run from its newest checkpoint to its test scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader

from kdx.cell_code import code_of
from kdx.checkpoint_names import CheckpointKind
from kdx.data.corpus import load_corpus
from kdx.data.reading import check_batch, data_facts
from kdx.grid.identity import cell_id
from kdx.grid.spec import CellSpec
from kdx.run_options import RunOptions
from kdx.tasks import TASKS
from kdx.training.attention_weights import ENTROPY
from kdx.training.checkpoint import CheckpointFiles, name_of
from kdx.training.determinism import fix_arithmetic, reseed
from kdx.training.divergence import Diverged, ended_worse
from kdx.training.environment import environment
from kdx.training.lifecycle import Lifecycle
from kdx.training.longer import Shorter, take_over
from kdx.training.module import TaskModule
from kdx.training.recorder import Recorder
from kdx.training.resume import conditions, resume
from kdx.training.stopping import Pruned, StopRequest
from kdx.training.trainer import trainer_of, training_batches
from kdx.vocabulary import Split

PARAMETERS = "model/parameters"


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended; to diverge or to be pruned is an outcome like any other."""

    diverged: str | None
    """Why, in one line: a loss is no number, or far above that of the first step at the end; None otherwise."""
    step: int
    """Optimiser steps done."""
    valid_score: float | None
    """Best value of the selection metric, or that of the mean of weights where the cell asks for one and the run came
    to its last step."""
    valid_step: int | None
    """The step of that value; its weights are the ones tested."""
    test_score: float | None
    """The same metric on the test split; None where the run did not come to it."""
    definitions: dict[str, str]
    """Metric → what it means, or its signature."""
    undertrained: str | None = None
    """A line on a run that did not diverge, but whose final loss is not below that of unigrams; None otherwise."""
    weights_sha256: str | None = None
    """The hash of the file with the weights that were tested, or would have been; None if there is none."""
    pruned: str | None = None
    """Why the recorder stopped it after a validation, in one line; None if it did not."""


def train(
    spec: CellSpec,
    seed: int,
    *,
    folder: Path,
    recorder: Recorder,
    stop: StopRequest,
    home: Path | None = None,
    options: RunOptions = RunOptions(),
    recorded: int | None = None,
    checkpointed: int | None = None,
    tests: bool = True,
    shorter: Shorter | None = None,
) -> RunOutcome:
    """Train, validate, and test once: with the best-validation weights, or with the mean over the last validations.

    That mean is validated itself, after the last step; its metrics are named `valid/average/bleu` and so on. A run that
    the recorder has pruned is not tested; it keeps the weights that would have been. What the run needed to resume is
    left until its outcome is recorded, see `kdx.training.resume.delete_resume_checkpoints`.

    Args:
        spec: the resolved cell.
        seed: of initialisation, dropout and, where examples are shuffled, the order of batches.
        folder: where the run's checkpoints are; a run resumes from the newest that is whole.
        recorder: keeps the metrics.
        stop: when asked, training stops at its next safe point.
        home: folder of prepared corpora; None: the user's.
        options: the options of the run beside its cell and its seed.
        recorded: the step that its recorded rows have come to. A checkpoint beyond is set aside, for it would leave a
            hole: the rows are those of an older copy of the database. None: it is not known.
        checkpointed: the step of the newest checkpoint that is known to have been made; if it is gone, the recorder
            gets a note.
        tests: whether it ends with the test; else it ends after its last validation, and nothing scores the test split.
        shorter: a run of this cell with fewer steps to continue from, if this one has no checkpoint yet.

    Raises:
        KdxError: the corpus does not fill one batch.
        Stopped: the run was asked to stop and can resume later.
        StorageError: weights that are to be tested were damaged meanwhile, so that the next attempt makes them
            anew; or a damaged checkpoint cannot be set aside.
        ChangedError: it began under other conditions, and that is to be refused.
    """
    fix_arithmetic(spec.training)
    training = spec.training
    reseed(seed, "weights")
    corpus = load_corpus(spec.task, spec.data, home)
    check_batch(spec, corpus)
    task: type[TaskModule] = TASKS[spec.task]
    batches = task.batches(spec, corpus, seed)
    module = task.of(spec, corpus)
    facts, code = environment(training), code_of(spec)
    now = conditions(facts, corpus.fingerprint, code.modules)
    own = f"{cell_id(spec)}-{seed}"

    files = CheckpointFiles(folder)
    files.sweep()
    resumed, changed = resume(
        files, own, now, recorder, if_changed=options.if_changed, recorded=recorded, checkpointed=checkpointed
    )
    if resumed is None and shorter is not None and take_over(files, shorter, own, now, recorder):
        resumed, _ = resume(files, own, now, recorder, if_changed=options.if_changed, recorded=None, checkpointed=None)
    step = resumed.step if resumed else 0
    recorder.begin(
        {**facts, "code": dict(code.modules)}, corpus.fingerprint, code.sha256, step, changed, data_facts(spec, corpus)
    )
    if resumed is None:
        recorder.metric(
            PARAMETERS, 0, float(sum(weight.numel() for weight in module.parameters() if weight.requires_grad))
        )
    shared_step = training.shared_steps if options.keep_state else 0
    lifecycle = Lifecycle(files, recorder, seed, stop, {"run": own, "conditions": now}, shared_step)
    if resumed and resumed.pruned:
        lifecycle.load_state_dict(resumed.lifecycle)
        return _pruned(resumed.step, files, lifecycle, module)
    per_pass = max(1, len(batches.train) // training.accumulate)
    validate_every = min(training.validate_every or per_pass, training.steps)
    trainer = trainer_of(training, validate_every, lifecycle, files)
    loader = training_batches(batches.train, training, resumed.batches if resumed else 0)
    valid = DataLoader(batches.evaluation[Split.VALID], batch_size=None)
    try:
        trainer.fit(module, loader, valid, ckpt_path=resumed.path if resumed else None, weights_only=True)
        if training.steps % validate_every:
            trainer.validate(module, valid, verbose=False)
        module.model.load_state_dict(_mean(files, lifecycle.weights))
        if training.average:
            lifecycle.averaged = True
            trainer.validate(module, valid, verbose=False)
    except Diverged as error:
        return _diverged(str(error), trainer.global_step, lifecycle, module)
    except Pruned:
        return _pruned(trainer.global_step, files, lifecycle, module)
    assert lifecycle.best is not None
    step, score = lifecycle.best
    test_score = None
    if tests:
        trainer.test(module, DataLoader(batches.evaluation[Split.TEST], batch_size=None), verbose=False)
        for name, value in module.results.items():
            recorder.metric(f"test/{name}", step, value)
        documents = module.document_sums()
        if documents:
            recorder.documents(documents)
        for name, lines in module.outputs().items():
            recorder.outputs(f"test/{name}", lines)
        test_score = module.results[spec.selection[0].removeprefix("valid/")]
    weights = _keep(files, spec, lifecycle.weights, step, module.model.state_dict())
    final, unigram = lifecycle.valid["loss"], corpus.unigram_loss
    undertrained = None
    diverged = ended_worse(final, lifecycle.first_loss)
    if not diverged and not final < unigram:
        undertrained = f"final validation loss {final:.3f} is not below {unigram:.3f}, the unigram distribution's"
    return RunOutcome(diverged, training.steps, score, step, test_score, _named(module), undertrained, weights)


def _mean(files: CheckpointFiles, names: list[str]) -> dict[str, Tensor]:
    """Return the mean of the weights in these files, summed in float64 in their order; of one file, its own bits."""
    first = files.load(files.folder / names[0])
    total = {name: tensor.double() for name, tensor in first.items()}
    for more in names[1:]:
        for name, tensor in files.load(files.folder / more).items():
            total[name] += tensor
    return {name: (tensor / len(names)).to(first[name].dtype) for name, tensor in total.items()}


def _named(module: TaskModule) -> dict[str, str]:
    defined: dict[str, str] = {}
    for split in (Split.VALID, Split.TEST):
        defined |= {f"{split}/{name}": text for name, text in module.definitions(split).items()}
    defined |= {f"valid/{name}": ENTROPY for name in module.entropies}
    average = module.spec.training.average
    if average:
        mean = f"of the mean of the weights at the last {average} validations"
        valid = {name.removeprefix("valid/"): text for name, text in defined.items() if name.startswith("valid/")}
        defined |= {f"valid/average/{name}": f"{mean}: {text}" for name, text in valid.items()}
    return defined | {PARAMETERS: "numbers that training changes; what is shared counts once"}


def _diverged(reason: str, step: int, lifecycle: Lifecycle, module: TaskModule) -> RunOutcome:
    best_step, best = lifecycle.best or (None, None)
    return RunOutcome(reason, step, best, best_step, None, _named(module))


def _pruned(step: int, files: CheckpointFiles, lifecycle: Lifecycle, module: TaskModule) -> RunOutcome:
    """Keeps the weights that would have been tested, had the run ended here."""
    assert lifecycle.best is not None
    best_step, best = lifecycle.best
    kept_step = step if module.spec.training.average else best_step
    weights = _keep(files, module.spec, lifecycle.weights, kept_step, _mean(files, lifecycle.weights))
    return RunOutcome(
        None, step, best, best_step, None, _named(module), weights_sha256=weights, pruned=lifecycle.pruned
    )


def _keep(files: CheckpointFiles, spec: CellSpec, names: list[str], step: int, mean: Mapping[str, Any]) -> str:
    """Keep what a finished run keeps, its best weights or their mean, and return the SHA-256 of that file.

    Args:
        names: files of the weights that were averaged, or of the best.
        mean: their mean.
    """
    kind = CheckpointKind.AVERAGE if spec.training.average else CheckpointKind.BEST
    files.keep(kind)
    path = files.write(kind, step, mean) if len(names) > 1 else files.publish_as(kind, names[0])
    return name_of(path).sha256
