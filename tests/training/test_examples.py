"""Runs on generated examples: what they measure, and that they go on after a stop with the same bits."""

import dataclasses
import math

import pytest
import torch
from runs import STEPS, VALIDATIONS, Run, run, same_bits, save_every_step

from kdx.data.batching import ExampleBatches
from kdx.data.examples import NO_ANSWER, GeneratedExamples
from kdx.data.generated import load_examples
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.difficulty import slices_of
from kdx.vocabulary import Split

# Of several corpora of a task, the first.
CORPUS = {made.task: name for name, made in reversed([*BUILT_IN.items()]) if isinstance(made, GeneratedExamples)}
ARMS = {
    "image": {"task": "image", "position": "product"},
    "set": {"task": "set"},
    "multimodal": {"task": "multimodal", "position": "product"},
    "crossmodal": {"task": "multimodal", "space": "crossmodal", "position": "direct-sum"},
    "tour": {"task": "tour"},
    "graph": {"task": "graph", "position": "lookup", "value": "table"},
    "answer": {"task": "answer", "position": "direct-sum"},
}
SIZES = {Split.TRAIN: 64, Split.VALID: 30, Split.TEST: 30}
every_arm = pytest.mark.parametrize("arm", ARMS)


def cell(arm: str, **training) -> CellSpec:
    task = ARMS[arm]["task"]
    fields = {
        **ARMS[arm],
        "data": {"corpus": CORPUS[task]},
        "model": {"width": 24, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "inner": 16},
        "training": {
            "steps": STEPS,
            "batch_tokens": 8 * BUILT_IN[CORPUS[task]].tokens,
            "warmup": 3,
            "validate_every": 5,
            "record_every": 1,
        }
        | training,
    }
    return CellSpec.model_validate(fields)


@pytest.fixture(scope="module", autouse=True)
def few_examples():
    """Enough of each corpus to see that all are read."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CORPUS.values():
            patch.setitem(BUILT_IN, name, dataclasses.replace(BUILT_IN[name], sizes=SIZES))
        yield


@pytest.fixture(scope="module")
def whole(home, few_examples, tmp_path_factory):
    """A run from beginning to end, by arm; it left a checkpoint before every step but the first."""
    done: dict[str, Run] = {}

    def _whole(arm: str) -> Run:
        if arm not in done:
            with pytest.MonkeyPatch.context() as patch:
                save_every_step(patch, keep_all=True)
                done[arm] = run(cell(arm), tmp_path_factory.mktemp(arm), home)
        return done[arm]

    return _whole


@pytest.mark.slow
@every_arm
def test_a_run_measures_what_its_task_is_told_by_and_says_what_it_means(arm, whole):
    done = whole(arm)
    metrics = TASKS.definition(done.spec.task).metrics
    for split in ("valid", "test"):
        measured = {name.removeprefix(f"{split}/") for name, _ in done.rows if name.startswith(f"{split}/")}
        by_slice = {name for name in measured if name.startswith("accuracy/")}
        assert {name for name in measured if not name.startswith("entropy/")} - by_slice == set(metrics)
        assert bool(by_slice) == (split == "test" and bool(slices_of(done.spec.data.corpus)))
        assert by_slice <= set(ResolvedSpec.of(done.spec).test_metrics)
    assert list(done.column(done.spec.selection[0])) == VALIDATIONS
    assert {name for name, _ in done.rows if not name.startswith("train/")} <= done.outcome.definitions.keys()
    assert any(name.startswith("valid/entropy/") for name, _ in done.rows)


@pytest.mark.slow
@every_arm
@pytest.mark.parametrize("step", [1, 5, STEPS - 1])
def test_a_resumed_run_ends_as_if_it_had_never_been_broken(arm, step, whole, home, tmp_path):
    unbroken = whole(arm)
    unbroken.left_at(step, tmp_path)
    resumed = run(unbroken.spec, tmp_path, home)
    assert resumed.rows == {
        (name, at): value for (name, at), value in unbroken.rows.items() if at > step or name.startswith("test/")
    }
    assert resumed.outcome == unbroken.outcome
    assert same_bits(resumed.weights, unbroken.weights)


@every_arm
def test_the_scores_are_those_of_the_best_weights_on_every_test_example(arm, whole, home):
    done = whole(arm)
    spec = done.spec
    corpus = load_examples(spec.data, home, TASKS.definition(spec.task))
    module = TASKS[spec.task].of(spec, corpus).eval()
    module.model.load_state_dict(done.weights)
    (batch,) = ExampleBatches(corpus.splits[Split.TEST], 10**6).in_order()
    with torch.no_grad():
        logits, targets = module.model(**batch.inputs), batch.targets
    asked = targets != NO_ANSWER
    loss = -logits[asked].double().log_softmax(-1).gather(-1, targets[asked][:, None]).mean().item()
    rows = {name: value for (name, _), value in done.rows.items() if name.startswith("test/")}
    assert rows["test/loss"] == pytest.approx(loss, rel=1e-5)
    if spec.task == "image":
        assert rows["test/bits_per_dimension"] == pytest.approx(loss / math.log(2), rel=1e-5)
    else:
        right = logits.argmax(-1) == targets
        assert rows["test/accuracy"] == pytest.approx(100 * right[asked].double().mean().item())
        for respect, values in batch.slices.items():
            by_value = {value: right[asked & (values == value)].tolist() for value in values[asked].tolist()}
            told = {
                name.partition("=")[2]: of for name, of in rows.items() if name.startswith(f"test/accuracy/{respect}=")
            }
            whole = {name: [int(end) for end in name.split("-")] for name in told}
            assert all(sum(ends[0] <= value <= ends[-1] for ends in whole.values()) == 1 for value in by_value)
            for name, ends in whole.items():
                there = [hit for value, hits in by_value.items() if ends[0] <= value <= ends[-1] for hit in hits]
                assert told[name] == pytest.approx(100 * sum(there) / len(there))
    if spec.task == "answer":
        whole = [all(one[which].tolist()) for one, which in zip(right, asked, strict=True)]
        assert rows["test/exact_match"] == pytest.approx(100 * sum(whole) / len(whole))
    if spec.task == "tour":
        assert rows["test/length_ratio"] > 1


@every_arm
def test_weights_alone_say_what_the_model_is(arm, whole):
    done = whole(arm)
    TASKS[done.spec.task].model_of(done.spec, done.weights).load_state_dict(done.weights)
