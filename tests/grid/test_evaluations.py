"""What an evaluation is follows from what it does otherwise than the run's own test."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS


def cell(task: str = "prediction", **settings) -> CellSpec:
    if task == "prediction":
        settings = {"training": {"batch_tokens": 640, "length": 64}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


def resolved(spec: CellSpec, name: str = "one", **settings) -> ResolvedEvaluation:
    return resolve_evaluation(spec, EvaluationRequest(name, EvaluationSettings.model_validate(settings)))


def test_every_setting_is_reported_and_what_is_not_asked_for_is_as_in_the_test():
    one = resolved(cell(memory=8), length=128)
    assert one.settings == {"streams": 10, "length": 128, "memory": 8, "corpus": "text", "split": "test"}
    assert one.changes == {"length": 128}
    section = {"beam": 4, "longest": [1.5, 9]}
    one = resolved(cell("translation", evaluation=section), beam=10, split="valid")
    assert one.settings | {"beam": 10, "longest": [1.5, 9], "split": "valid"} == one.settings
    assert one.changes == {"beam": 10, "split": "valid"}
    assert one.spec.evaluation.beam == 10 and one.spec.evaluation.longest == (1.5, 9)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "length": st.sampled_from([16, 64, 128]),
        "streams": st.sampled_from([5, 10]),
        "memory": st.sampled_from([0, 8]),
        "split": st.sampled_from(["valid", "test"]),
        "corpus": st.sampled_from(["text", "other"]),
    },
)


@given(SETTINGS, SETTINGS)
def test_two_evaluations_are_one_exactly_where_all_their_settings_are(first, second):
    spec = cell(memory=8)
    one, other = resolved(spec, "a", **first), resolved(spec, "b", **second)
    assert (one.id == other.id) == (one.settings == other.settings)


@given(SETTINGS)
def test_what_changes_is_all_that_is_needed_to_make_it(settings):
    one = resolved(cell(memory=8), **settings)
    again = resolved(cell(memory=8), **one.changes)
    assert (again.id, again.settings, again.spec) == (one.id, one.settings, one.spec)


def test_an_evaluation_leaves_the_cell_as_it_is():
    spec = cell()
    before = cell_id(spec)
    resolved(spec, length=128)
    assert cell_id(spec) == before


def test_the_id_of_what_changes_is_for_ever():
    assert resolved(cell()).id == "44136fa355b3678a1146ad16f7e8649e"
    assert resolved(cell(), length=128).id == "e14eb2c54f1de67b75275419eb55cc03"


def test_a_scheme_that_sees_distances_only_takes_a_longer_memory():
    assert resolved(cell(position="relative", memory=8), memory=16).changes == {"memory": 16}


def test_every_task_can_be_evaluated_on_its_validation_text():
    for task in TASKS.definitions():
        assert "split" in task.evaluation_settings
        assert set(task.evaluation_settings) <= set(EvaluationSettings.model_fields)
        assert ("corpus" in task.evaluation_settings) == (task.data.other_reader is not None)


GRID = "name: one\ntask: prediction\ndata: {corpus: text}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def load(text: str, grid: str = GRID) -> Plan:
    Path("grid.yaml").write_text(grid + text)
    return load_grid("grid.yaml")


def test_a_list_makes_one_evaluation_of_each_value():
    plan = load("evaluations:\n  longer: {length: [128, 256], streams: [2, 4]}\n  again: {}\n")
    assert [(one.name, one.settings.plain) for one in plan.evaluations] == [
        *(("longer", {"length": length, "streams": streams}) for length in (128, 256) for streams in (2, 4)),
        ("again", {}),
    ]


def test_a_pair_of_numbers_is_one_value_of_longest():
    grid = "name: one\ntask: translation\ndata: {corpus: text}\n"
    (one,) = load("evaluations: {a: {longest: [2.0, 5]}}\n", grid).evaluations
    assert one.settings.longest == (2.0, 5)
    assert len(load("evaluations: {a: {longest: [[2.0, 5], [1.0, 0]]}}\n", grid).evaluations) == 2


def test_no_cell_changes_by_what_is_evaluated():
    asked = load("evaluations: {longer: {length: 256}}\n")
    assert [cell.id for cell in asked.cells] == [cell.id for cell in load("").cells]
    assert asked.runs == load("").runs


def test_an_extending_grid_adds_evaluations_and_takes_them_out():
    Path("base.yaml").write_text(GRID + "evaluations: {longer: {length: 256}, narrow: {streams: 2}}\n")
    plan = load("evaluations: {narrow: null, wide: {streams: 9}}\n", "extends: base.yaml\n")
    assert [one.name for one in plan.evaluations] == ["longer", "wide"]


def test_what_some_cells_can_be_is_asked_of_these_alone():
    grid = f"{GRID}axes:\n  encoding: [sinusoidal, learned]\nposition: direct-sum\n"
    plan = load("evaluations: {far: {length: 2000}}\n", grid)
    able, unable = plan.cells
    assert [one.settings["length"] for one in plan.evaluations_of(able.id)] == [2000]
    assert plan.evaluations_of(unable.id) == plan.impossible_evaluations(able.id) == ()
    ((asked, reason),) = plan.impossible_evaluations(unable.id)
    assert (asked.name, reason) == ("far", "a learned table has 1024 positions, and 2000 are in sight")


def test_in_a_grid_of_two_tasks_each_has_its_own():
    text = "tasks: {translation: {}, prediction: {}}\nevaluations: {far: {length: 256}, wide: {beam: 4}}\n"
    plan = load(text, "name: one\ndata: {corpus: text}\n")
    assert [[one.request.name for one in plan.evaluations_of(cell.id)] for cell in plan.cells] == [["wide"], ["far"]]
