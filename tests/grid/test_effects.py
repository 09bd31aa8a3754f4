"""Settings of a grid that no cell uses are refused where they are written."""

import pytest
from grids import faults_of, written

from kdx.grid.load import load_grid

SMALL = """
name: small
task: translation
data: {corpus: synthetic-translation}
"""


def test_an_option_that_no_cell_takes_is_refused_where_it_is_written(tmp_path):
    (fault,) = faults_of(tmp_path, SMALL + "kernel: linear\ntemperature: 2\n")
    assert fault.startswith("grid.yaml:6:1: `temperature` has no effect: no cell uses it")
    assert "allowed: with exponential, rbf" in fault
    (fault,) = faults_of(tmp_path, SMALL + "axes: {kernel: [linear, cosine], temperature: [1, 2]}\n")
    assert "`temperature` has no effect" in fault


@pytest.mark.parametrize(
    ("task", "setting", "fault"),
    [
        ("prediction", "model: {encoder_layers: 2}", "`model.encoder_layers: 2` has no effect: every cell has 0\n"),
        ("prediction", "filter: {encoder-self: window}", "`filter.encoder-self: window` has no effect: every cell has"),
        ("translation", "training: {momentum: 0.5}", "`training.momentum: 0.5` has no effect: every cell has 0.95\n"),
    ],
)
def test_a_setting_that_every_cell_has_otherwise_is_refused_where_it_is_written(tmp_path, task, setting, fault):
    text = f"task: {task}\ndata: {{corpus: text}}\n{setting}\n"
    (refused,) = faults_of(tmp_path, text)
    assert refused.startswith(f"grid.yaml:3:{setting.index('{') + 2}: {fault}")
    assert refused.endswith("hint: write decoder_layers: 2" if "layers" in setting else "hint: remove it")


def test_a_setting_that_one_task_uses_is_without_effect_in_the_others(tmp_path):
    text = "data: {corpus: text}\nmodel: {encoder_layers: 3, decoder_layers: 3, embeddings: shared}\n"
    plan = load_grid(written(tmp_path, text + "tasks: {prediction: {}, translation: {}}\n"))
    assert [cell.spec.model.encoder_layers for cell in plan.cells] == [0, 3]
    (only,) = load_grid(written(tmp_path, text.replace("encoder_layers: 3, ", "") + "task: prediction\n")).cells
    assert only.id == plan.cells[0].id


def test_an_option_that_some_cell_takes_is_without_effect_in_the_others(tmp_path):
    plan = load_grid(written(tmp_path, SMALL + "axes: {kernel: [linear, rbf], temperature: [1, 2]}\n"))
    assert [cell.spec.option("temperature") for cell in plan.cells] == [None, 1.0, 2.0]


def test_a_note_says_where_runs_end_within_their_warm_up(tmp_path):
    short = SMALL + "training: {steps: 60}\n"
    (note,) = load_grid(written(tmp_path, short)).notes
    assert note == (
        "the learning rate never reaches its peak: it ends at 30%, as training.steps is 60 and training.warmup 200"
    )
    (note,) = load_grid(written(tmp_path, short + "axes: {training.warmup: [60, 61]}\n")).notes
    assert note.startswith("the learning rate never reaches its peak in 1 of 2 cells: it ends at 98%")
    assert load_grid(written(tmp_path, SMALL)).notes == ()
    searched = "tune: {parameters: {training.warmup: [10, 20]}, trials: 2, sampler: random}\n"
    assert load_grid(written(tmp_path, short + searched)).notes == ()
