"""An evaluation's numbers follow from the weights and its own settings, whatever else is asked of the same run."""

import pytest
from runs import cell

from kdx.data.corpus import load_corpus
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training.determinism import reseed
from kdx.training.evaluation import Evaluator
from kdx.training.stopping import Stopped, StopRequest


@pytest.fixture
def spec() -> CellSpec:
    # Its test has a longer memory than its training, from which positions are counted.
    return cell("prediction", evaluation={"memory": 16}, axes={"memory": 8})


def evaluator(spec: CellSpec, stop: StopRequest | None = None, heard: list | None = None) -> Evaluator:
    """Return an evaluator of the weights as they are before the first step."""
    corpus = load_corpus(spec.task, spec.data)
    reseed(0, "weights")
    weights = TASKS[spec.task].of(spec, corpus).model.state_dict()
    heard = [] if heard is None else heard
    return Evaluator(spec, 0, weights, corpus, stop=stop or StopRequest(), alive=lambda: heard.append(1))


def asked(spec: CellSpec, **settings) -> ResolvedEvaluation:
    return resolve_evaluation(spec, EvaluationRequest("one", EvaluationSettings.model_validate(settings)))


def test_what_else_is_asked_changes_no_bit(spec, data_home):
    wanted = [
        asked(spec, **settings) for settings in ({}, {"length": 32}, {"memory": 0}, {"length": 8, "split": "valid"})
    ]
    apart = [evaluator(spec).evaluate(evaluation) for evaluation in wanted]
    together = evaluator(spec)
    assert [together.evaluate(evaluation) for evaluation in reversed(wanted)][::-1] == apart
    assert len({outcome.metrics["loss"] for outcome in apart}) == len(wanted)
    assert [outcome.longest_context for outcome in apart] == [32, 48, 16, 24]
    assert "32 tokens" in apart[1].definitions["loss"]


def test_positions_are_counted_as_in_the_test_however_little_is_remembered(spec, data_home):
    its = evaluator(spec)
    model = its._model(asked(spec, memory=0).spec)
    assert model.decoder.layers[0].self_attention.memory_length == 16


def test_it_tells_signs_of_life_and_stops_before_the_next_batch(spec, data_home):
    heard: list = []
    stop = StopRequest()
    its = evaluator(spec, stop, heard)
    its.evaluate(asked(spec))
    assert len(heard) > 1
    stop.asked = True
    with pytest.raises(Stopped):
        its.evaluate(asked(spec))
