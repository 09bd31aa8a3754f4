"""A run is a function of its cell and its seed, whatever happens to it on the way."""

import math

import pytest
import pytorch_lightning as lightning
import torch
from runs import STEPS, TASKS, VALIDATIONS, WORSENS, assert_same, cell, same_bits, save_every_step

from kdx.data.batching import ParallelBatches, StreamBatches, shuffled
from kdx.data.parallel import load_parallel
from kdx.data.stream import load_stream
from kdx.training.checkpoint import CheckpointFiles
from kdx.training.determinism import reseed
from kdx.training.prediction import PredictionModule
from kdx.training.translation import TranslationModule
from kdx.vocabulary import Split

BOTH = pytest.mark.parametrize("task", TASKS)


def ends_of(done, prefix: str) -> dict[str, float]:
    return {name: value for (name, _), value in done.rows.items() if name.startswith(prefix)}


def evaluation_of(done, split: Split, home):
    """A module with the weights that the run left, and the batches of a split."""
    training = done.spec.training
    if done.spec.task == "translation":
        corpus = load_parallel(done.spec.data, home)
        module = TranslationModule(done.spec, corpus)
        batches = ParallelBatches(corpus.splits[split], training.batch_tokens)
    else:
        corpus = load_stream(done.spec.data, home)
        module = PredictionModule(done.spec, corpus)
        batches = StreamBatches(corpus.splits[split], training.batch_tokens // training.length, training.length)
    module.model.load_state_dict(done.weights)
    return module, batches


def evaluated(module, batches, split: Split) -> dict[str, float]:
    module.eval()
    with torch.no_grad():
        for batch in batches.in_order():
            module.evaluate(batch, split)
    return module.summarise(split)


@BOTH
def test_the_same_seed_gives_the_same_bits_wherever_checkpoints_are_taken(task, train, unbroken):
    again = train(cell(task))
    assert_same(again, unbroken(task))
    assert len(unbroken(task).checkpoints()) == STEPS - 1 and again.checkpoints() == []


@BOTH
def test_another_seed_gives_another_run_on_the_same_text(task, train, unbroken):
    other, first = train(cell(task), seed=1), unbroken(task)
    assert all(other.rows[key] != first.rows[key] for key in (("train/loss", 1), ("train/loss", 2), ("valid/loss", 5)))
    assert other.of("begin") == first.of("begin")


@BOTH
def test_the_best_validation_weights_are_the_ones_tested(task, train, home):
    done = train(cell(task, **WORSENS))
    valid = done.column("valid/loss")
    assert done.outcome.valid_score == min(valid.values()) == valid[5] < valid[12]
    assert done.outcome.valid_step == 5 and list(done.column("test/loss")) == [5]

    module, batches = evaluation_of(done, Split.TEST, home)
    metrics = evaluated(module, batches, Split.TEST)
    assert {f"test/{name}": value for name, value in metrics.items()} == ends_of(done, "test/")
    assert done.outcome.test_score == metrics["loss"]


@BOTH
@pytest.mark.parametrize(("average", "validations"), [(1, [12]), (2, [10, 12]), (9, [5, 10, 12])])
def test_the_mean_of_the_weights_at_the_last_validations_is_validated_once_and_tested(
    task, average, validations, unbroken, train, home
):
    whole = unbroken(task, average=2)
    done = whole if average == 2 else train(cell(task, average=average))
    # Averaging changes nothing of the training before it.
    assert {(name, step): value for (name, step), value in done.rows.items() if name.startswith("train/")} == {
        (name, step): value for (name, step), value in unbroken(task).rows.items() if name.startswith("train/")
    }
    of = {int(path.name[8:17]): torch.load(path, weights_only=True) for path in whole.checkpoints("weights")}
    states = [of[step] for step in validations]
    mean = {name: torch.stack([state[name].double() for state in states]).mean(0).float() for name in done.weights}
    assert all(torch.allclose(done.weights[name], mean[name], rtol=0, atol=1e-7) for name in mean)
    assert [path.name[:17] for path in done.checkpoints("average")] == ["average-000000012"]
    assert not done.checkpoints("best")

    module, batches = evaluation_of(done, Split.VALID, home)
    metrics = evaluated(module, batches, Split.VALID)
    told = {name.removeprefix("valid/average/"): value for name, value in ends_of(done, "valid/average/").items()}
    assert {name: told[name] for name in metrics} == metrics
    assert told.keys() - metrics.keys() == {name for name in told if name.startswith("entropy/")}
    assert {step for name, step in done.rows if name.startswith(("valid/average/", "test/"))} == {STEPS}
    assert (done.outcome.valid_score, done.outcome.valid_step) == (metrics["loss"], STEPS)
    module, batches = evaluation_of(done, Split.TEST, home)
    assert done.outcome.test_score == evaluated(module, batches, Split.TEST)["loss"]
    if average == 1:
        assert told == {
            name.removeprefix("valid/"): value
            for (name, step), value in done.rows.items()
            if step == STEPS and name.startswith("valid/") and not name.startswith("valid/average/")
        }


def test_a_mean_whose_loss_is_no_number_ends_the_run_as_diverged(train, monkeypatch):
    score, spec = PredictionModule.hidden_and_targets, cell("prediction", average=2)
    validate = lightning.Trainer.validate

    def overflow(module, batch):
        hidden, targets = score(module, batch)
        return hidden * math.nan, targets

    def second(trainer, *arguments, **words):
        # The first is the plain one after the last step.
        if trainer.callbacks[0].averaged:
            monkeypatch.setattr(PredictionModule, "hidden_and_targets", overflow)
        return validate(trainer, *arguments, **words)

    monkeypatch.setattr(lightning.Trainer, "validate", second)
    done = train(spec)
    valid = done.column("valid/loss")
    assert done.outcome.diverged == f"validation loss is nan at step {STEPS}"
    assert (done.outcome.valid_score, done.outcome.test_score) == (min(valid.values()), None)
    assert not list(done.folder.glob("*.ckpt"))


@BOTH
def test_of_equal_validations_the_earliest_is_the_best(task, train):
    done = train(cell(task, select=None, learning_rate=1e-30))
    assert len(set(done.column("valid/loss").values())) == 1
    assert done.outcome.valid_step == VALIDATIONS[0]


def test_selection_by_bleu_takes_the_highest(train):
    done = train(cell("translation", select=None))
    bleu = done.column("valid/bleu")
    assert list(bleu) == VALIDATIONS
    assert done.outcome.valid_score == max(bleu.values())
    assert done.outcome.valid_step == next(step for step, value in bleu.items() if value == max(bleu.values()))
    assert done.outcome.test_score == done.column("test/bleu")[done.outcome.valid_step]


@BOTH
def test_a_run_leaves_its_best_weights_and_no_other_checkpoint(task, train):
    done = train(cell(task), stop_after=6)
    assert done.checkpoints() and not done.checkpoints("best")
    # Of an earlier try that went another way.
    CheckpointFiles(done.folder).write("best", 999, {"weights": torch.zeros(1)})
    (done.folder / f".kdx-{'7' * 16}").write_bytes(b"half")
    done = train(cell(task))
    (best,) = (path for path in done.folder.iterdir() if path.suffix == ".ckpt")
    assert best.name.startswith(f"best-{done.outcome.valid_step:09d}.")


@pytest.mark.parametrize(
    ("training", "reason", "step", "recorded"),
    [
        ({}, "training loss is nan at step 1", 1, [1, 2]),
        ({"steps": 1}, "validation loss is nan at step 1", 1, [1]),
    ],
    ids=["training", "validation"],
)
def test_a_loss_that_is_no_number_ends_the_run_as_diverged(training, reason, step, recorded, train, figure):
    done = train(cell("prediction", learning_rate=1e30, clip=None, **training))
    outcome = done.outcome
    assert outcome.diverged == reason and outcome.step == step
    losses = [*done.column("train/loss").items()]
    assert [at for at, _ in losses] == recorded
    assert all(math.isnan(loss) is (at == 2) for at, loss in losses), "the curve shows its end"
    assert (outcome.valid_score, outcome.valid_step, outcome.test_score) == (None, None, None)
    assert not done.column("test/loss") and not list(done.folder.glob("*.ckpt"))
    assert outcome.definitions["valid/loss"]
    values = done.rows.values()
    figure(f"{outcome.diverged}: {len(values)} rows kept, {sum(map(math.isnan, values))} of them no number")


def test_a_run_that_diverges_late_keeps_its_best_score_and_leaves_no_checkpoint(train, monkeypatch):
    score = PredictionModule.hidden_and_targets

    def overflow(module, batch):
        hidden, targets = score(module, batch)
        return hidden * (math.inf if module.trainer.global_step >= 7 else 1.0), targets

    monkeypatch.setattr(PredictionModule, "hidden_and_targets", overflow)
    save_every_step(monkeypatch)
    done = train(cell("prediction"))
    outcome, valid = done.outcome, done.column("valid/loss")
    assert (outcome.diverged, outcome.step) == ("training loss is nan at step 7", 7)
    assert (outcome.valid_score, outcome.valid_step, outcome.test_score) == (valid[5], 5, None)
    assert not list(done.folder.glob("*.ckpt"))


@BOTH
def test_a_final_validation_loss_not_below_the_unigram_distribution_completes_undertrained(task, train, home):
    done = train(cell(task, learning_rate=1e-9))
    corpus = load_parallel(done.spec.data, home) if task == "translation" else load_stream(done.spec.data, home)
    final = done.column("valid/loss")[STEPS]
    assert final >= corpus.unigram_loss
    assert done.outcome.diverged is None
    assert done.outcome.undertrained == (
        f"final validation loss {final:.3f} is not below {corpus.unigram_loss:.3f}, the unigram distribution's"
    )
    assert done.outcome.test_score == done.column("test/loss")[done.outcome.valid_step]


@BOTH
def test_a_final_validation_loss_far_above_the_first_training_loss_is_a_divergence_with_test_scores(task, train):
    done = train(cell(task, learning_rate=3.0, clip=None))
    first, final = done.column("train/loss")[1], done.column("valid/loss")[STEPS]
    assert final > 1.25 * first
    assert done.outcome.undertrained is None
    assert done.outcome.diverged == (
        f"final validation loss {final:.3f} is above 1.25 × {first:.3f}, the first step's training loss"
    )
    assert done.outcome.test_score == done.column("test/loss")[done.outcome.valid_step]


@BOTH
@pytest.mark.parametrize("average", [0, 2])
def test_every_metric_is_defined(task, average, unbroken):
    whole = unbroken(task, average=average)
    measured = {name for name, _ in whole.rows if not name.startswith("train/")}
    assert any(name.startswith("valid/average/") for name in measured) is (average > 0)
    assert measured <= whole.outcome.definitions.keys()
    assert all(whole.outcome.definitions.values())


def test_all_that_a_run_draws_comes_from_its_seed(train, home, monkeypatch, unbroken):
    first_weights, orders, seen = [], [], []
    weights_of = TranslationModule.of

    def of(spec, corpus):
        module = weights_of(spec, corpus)
        first_weights.append({name: tensor.clone() for name, tensor in module.model.state_dict().items()})
        return module

    monkeypatch.setattr(TranslationModule, "of", of)
    monkeypatch.setattr("kdx.data.batching.shuffled", lambda *key: orders.append(key) or shuffled(*key))
    monkeypatch.setattr("kdx.training.lifecycle.reseed", lambda *key: seen.append(key) or reseed(*key))
    spec = cell("translation")
    other = train(spec, seed=1)
    assert {seed for _, seed, _ in orders} == {1}
    assert {seed for seed, *_ in seen} == {1}
    assert {use for _, use, *_ in seen} == {"train", "valid", "test"}
    reseed(1, "weights")
    assert same_bits(first_weights[0], weights_of(spec, load_parallel(spec.data, home)).model.state_dict())
    assert other.rows != unbroken("translation").rows
