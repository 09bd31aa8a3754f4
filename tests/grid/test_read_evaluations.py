"""The evaluations of a grid file: one for each value of a list, and every fault at its line."""

from pathlib import Path

import pytest

from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan

GRID = "name: one\ntask: prediction\ndata: {corpus: text}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def load(text: str, grid: str = GRID) -> Plan:
    Path("grid.yaml").write_text(grid + text)
    return load_grid("grid.yaml")


def test_a_list_makes_one_evaluation_of_each_value():
    plan = load("evaluations:\n  longer: {length: [128, 256], streams: [2, 4]}\n  again: {}\n")
    assert [(one.name, one.settings.asked) for one in plan.evaluations] == [
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


SETTINGS = "streams, length, memory, corpus, split"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("evaluations: [1]\n", ["4:14: a list as evaluations\n  allowed: a mapping"]),
        (
            "evaluations:\n  a: {beam: 4}\n",
            [f"5:13: evaluation `a`: an evaluation of prediction has no `beam`\n  allowed: {SETTINGS}"],
        ),
        (
            "evaluations:\n  a: {lenght: 4}\n  b: {length: [x, 0]}\n",
            [
                "5:7: unknown key `evaluations.a.lenght`\n  allowed: beam, length_penalty, penalty, longest, "
                f"{SETTINGS}\n  hint: did you mean `length`?",
                "6:16: `x` as evaluations.b.length\n  allowed: a whole number from 1 on",
                "6:19: `0` as evaluations.b.length\n  allowed: a whole number from 1 on",
            ],
        ),
        (
            "evaluations:\n  a: {memory: 8}\n",
            ["5:15: evaluation `a`: a model that was trained without a memory has none\n  allowed: 0"],
        ),
        (
            "evaluations:\n  a: {split: train}\n",
            ["5:14: unknown evaluations.a.split `train`\n  allowed: valid, test"],
        ),
        ("evaluations:\n  a: {length: []}\n", ["5:15: `[]` as evaluations.a.length\n  allowed: at least one"]),
        (
            "evaluations:\n  a:\n",
            [
                "5:3: `evaluations.a` has no value\n  hint: write one, or remove it\n"
                f"  allowed: a mapping of beam, length_penalty, penalty, longest, {SETTINGS}"
            ],
        ),
        (
            f"evaluations: {{a: {{length: {list(range(1, 200))}}}}}\n",
            ["4:14: too many evaluations\n  allowed: at most 100"],
        ),
        (
            "position: direct-sum\nencoding: learned\nevaluations: {a: {length: 2000}}\n",
            [
                "6:18: evaluation `a`: a learned table has 1024 positions, and 2000 are in sight\n"
                "  hint: shorten what is read at once, or the memory"
            ],
        ),
    ],
)
def test_a_fault_is_told_at_its_line(text, told):
    with pytest.raises(Faults) as caught:
        load(text)
    assert [str(fault) for fault in caught.value.faults] == [f"grid.yaml:{one}" for one in told]


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
    assert [[one.asked.name for one in plan.evaluations_of(cell.id)] for cell in plan.cells] == [["wide"], ["far"]]
