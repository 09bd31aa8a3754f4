"""What a test measures by document and by slice adds up to its scores, however it is cut into batches."""

from bisect import bisect_left

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from runs import cell

from kdx.data.corpus import load_corpus
from kdx.data.documents import Documents
from kdx.data.vocabulary import END
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.tasks.difficulty import EDGES, slice_names
from kdx.training.determinism import reseed
from kdx.training.evaluation import EvaluationOutcome, Evaluator
from kdx.training.prediction import PredictionModule
from kdx.training.stopping import StopRequest
from kdx.training.sums import ByDocument, DocumentSums, Slices
from kdx.training.text import TextModule
from kdx.vocabulary import Split

OF_TASKS = {
    "classification": {"data": {"corpus": "synthetic-order", "train_lines": 200}},
    "answer": {"data": {"corpus": "recall"}, "position": "direct-sum"},
    "set": {"data": {"corpus": "synthetic-sets"}},
}


def cell_of(task: str, batch_tokens: int = 512) -> CellSpec:
    if task not in OF_TASKS:
        return cell(task, batch_tokens=batch_tokens)
    model = {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "inner": 16}
    training = {"steps": 2, "batch_tokens": batch_tokens, "warmup": 1}
    return CellSpec.model_validate({"task": task, **OF_TASKS[task], "model": model, "training": training})


def outcome_of(spec: CellSpec, **settings) -> EvaluationOutcome:
    """Evaluate the weights as they are before the first step."""
    corpus = load_corpus(spec.task, spec.data)
    reseed(0, "weights")
    weights = TASKS[spec.task].of(spec, corpus).model.state_dict()
    evaluator = Evaluator(spec, 0, weights, corpus, stop=StopRequest(), alive=lambda: None)
    return evaluator.evaluate(resolve_evaluation(spec, EvaluationRequest("", EvaluationSettings(**settings))))


@pytest.mark.parametrize("task", ["translation", "prediction", *OF_TASKS])
def test_the_documents_add_up_to_the_score_however_the_test_is_cut_into_batches(task, data_home):
    result = outcome_of(cell_of(task))
    assert result.documents and result.documents.unit == "block"
    sums = {name: np.array(its) for name, its in result.documents.sums.items()}
    assert len(sums["targets"]) == 100 and (sums["targets"] > 0).all()
    assert sums["nats"].sum() / sums["targets"].sum() == pytest.approx(result.metrics["loss"], rel=1e-6)
    if task in OF_TASKS:
        assert 100 * sums["right"].sum() / sums["targets"].sum() == pytest.approx(result.metrics["accuracy"])
    if task != "prediction":  # where another batch is another context
        again = outcome_of(cell_of(task, batch_tokens=1024)).documents
        assert again
        for name, its in again.sums.items():
            assert its == pytest.approx(result.documents.sums[name], rel=1e-5), name


@pytest.mark.parametrize("settings", [{}, {"streams": 3, "length": 40}, {"split": "valid", "memory": 0}])
def test_each_token_of_a_stream_counts_in_its_document(settings, data_home, monkeypatch):
    """The -ln p of a token is replaced by its number in the vocabulary."""
    monkeypatch.setattr(TextModule, "read", lambda self, batch: batch.targets.double())

    def of_lines(stream, vocabulary, title):
        return Documents("article", np.concatenate([[0], np.cumsum(stream == END)[:-1]]) // 7)

    monkeypatch.setattr("kdx.training.prediction.of_stream", of_lines)
    spec = cell("prediction", axes={"memory": 16})
    result = outcome_of(spec, **settings)
    stream = load_corpus("prediction", spec.data).splits[Split(settings.get("split", "test"))]
    of_items = of_lines(stream, None, None).of_items
    assert result.documents == DocumentSums(
        "article",
        {"targets": np.bincount(of_items).tolist(), "nats": np.bincount(of_items, stream).tolist()},
    )


def test_a_validation_divides_nothing(data_home):
    corpus = load_corpus("prediction", cell("prediction").data)
    module = PredictionModule(cell("prediction"), corpus)
    module.on_test_epoch_start()
    before = module.by_document
    module.on_validation_epoch_start()
    assert module.by_document is not before and module.document_sums() is None


@pytest.mark.parametrize("nats", [torch.tensor([1.0, torch.inf]), torch.tensor([torch.nan, 1.0])])
def test_sums_that_are_no_numbers_are_not_kept(nats):
    sums = ByDocument(Documents("block", np.array([0, 1])))
    sums.add(torch.tensor([0, 1]), nats=nats)
    assert sums.sums() is None


def test_what_is_measured_of_a_whole_document_is_kept_in_their_order():
    sums = ByDocument(Documents("block", np.array([0, 0, 1, 2, 2])))
    sums.add(torch.arange(5), nats=torch.ones(5))
    sums.add_each(lambda items: {"first": items[0], "items": len(items)})
    assert sums.sums() == DocumentSums(
        "block",
        {"targets": [2.0, 1.0, 2.0], "nats": [2.0, 1.0, 2.0], "first": [0.0, 2.0, 3.0], "items": [2.0, 1.0, 2.0]},
    )


TARGETS = st.lists(st.tuples(st.integers(0, 2**30), st.floats(0, 100, width=32)), min_size=1, max_size=30)


def added(slices: Slices, targets: list[tuple[int, float]], respect: str = "pairs") -> Slices:
    values, measured = zip(*targets, strict=True)
    slices.add(respect, torch.tensor(values), torch.tensor(measured))
    return slices


@given(TARGETS, st.integers(0, 30))
def test_every_target_counts_in_its_slice_and_batches_do_not_matter(targets, cut):
    by_slice: dict[str, list[float]] = {}
    for value, measured in targets:
        by_slice.setdefault(slice_names("pairs")[bisect_left(EDGES, value)], []).append(measured)
    expected = {name: sum(its) / len(its) for name, its in by_slice.items()}
    slices = Slices()
    for batch in (targets[:cut], targets[cut:]):
        if batch:
            added(slices, batch)
    assert slices.means() == pytest.approx(expected)
    # From the least values on.
    assert list(slices.means()) == [name for name in slice_names("pairs") if name in expected]


def test_respects_do_not_mix():
    slices = added(added(Slices(), [(3, 1.0)]), [(3, 5.0), (4, 6.0)], "distance")
    assert slices.means() == {"pairs=3-4": 1.0, "distance=3-4": 5.5}
