"""How an evaluation cuts a stream follows from the cell alone."""

from kdx.grid.reading import reading_of
from kdx.grid.spec import CellSpec


def cell(**settings) -> CellSpec:
    return CellSpec.model_validate({"task": "prediction", "data": {"corpus": "text"}, **settings})


def test_an_evaluation_reads_as_training_does_unless_said_otherwise():
    training = {"batch_tokens": 640, "length": 64}
    assert reading_of(cell(training=training, memory=8)) == (10, 64, 8)
    evaluation = {"streams": 3, "length": 16, "memory": 0}
    assert reading_of(cell(training=training, memory=8, evaluation=evaluation)) == (3, 16, 0)
