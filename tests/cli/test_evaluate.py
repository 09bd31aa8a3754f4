"""`kdx evaluate` makes what a sweep or its grid file asks for, and trains nothing."""

import json
from pathlib import Path

import pytest
from grids import TINY
from looked_after import DB, completed, planned, refused, typed

from kdx.cell_code import evaluation_code_of
from kdx.grid.load import load_grid
from kdx.store import evaluations, reading
from kdx.store.database import open_database
from kdx.store.evaluations import EvaluationResult

WIDE = "evaluations: {wide: {beam: [2, 3]}}\n"


pytestmark = pytest.mark.usefixtures("ran", "data_home")


def grid(text: str, seeds: int = 1) -> None:
    Path("grid.yaml").write_text(TINY % {"steps": 10, "seeds": seeds} + text)


def asked() -> list[dict]:
    with open_database(DB, write=False) as database:
        return reading.load_sweep(database).grid["evaluations"]


def test_the_evaluations_of_a_file_are_asked_for_from_then_on(ran):
    planned(2)
    grid(WIDE)
    assert typed("evaluate", "grid.yaml").exit_code == 0
    (plan,) = ran
    assert ran.trains == [False] and [evaluation.settings.beam for evaluation in plan.evaluations] == [2, 3]
    # The file asks for one seed, the sweep has two, and both are read.
    assert plan.seeds == (0, 1)
    assert asked() == [{"name": "wide", "settings": {"beam": beam}} for beam in (2, 3)]
    typed("evaluate", "tiny")
    assert ran[1].evaluations == plan.evaluations


def test_the_tables_of_the_file_come_with_its_evaluations(ran):
    planned(2)
    grid(WIDE + "tables: [{name: beams, rows: evaluation.beam}]\n")
    assert typed("evaluate", "grid.yaml").exit_code == 0
    with open_database(DB, write=False) as database:
        (table,) = reading.load_sweep(database).grid["tables"]
    assert (table["name"], table["rows"]) == ("beams", ["evaluation.beam"])


def test_a_sweep_that_asks_for_none_is_told_how_to(ran):
    planned(1)
    assert refused("evaluate").problem == "sweep `tiny` asks for no evaluations"
    assert ran == []


def test_what_does_not_fit_is_refused_and_nothing_is_kept(ran):
    planned(1)
    grid("evaluations: {far: {length: 128}}\n")
    assert "an evaluation of translation has no `length`" in str(refused("evaluate", "grid.yaml"))
    grid("evaluations: {other: {corpus: nowhere}}\n")
    fault = refused("evaluate", "grid.yaml")
    assert "grid.yaml:9:31: evaluation `other`: unknown corpus `nowhere`" in str(fault)
    grid(f"kernel: rbf\n{WIDE}")
    assert refused("evaluate", "grid.yaml").problem.count("1 cell in the grid only")
    assert ran == [] and asked() == []


def test_failed_evaluations_are_tried_again_when_that_is_asked(ran):
    (run,) = planned(1)
    completed(run)
    grid(WIDE)
    with open_database(DB, write=True) as database:
        for number, evaluation in enumerate(load_grid("grid.yaml").evaluations_of(run.cell_id)):
            error = "boom" if number else None
            evaluations.record(
                database, run.id, EvaluationResult(evaluation.id, evaluation.settings, None, error=error)
            )
    plan = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert [(run["action"], run["reason"]) for run in plan] == [
        ("skip", "completed, validation score 1.000; 1 evaluation failed")
    ]
    typed("evaluate", "grid.yaml")
    assert " 0 to make" not in typed("plan", "grid.yaml").stderr
    typed("evaluate", "grid.yaml", "--failed")
    (decided,) = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    assert (decided["action"], [settings["beam"] for settings in decided["evaluations"]]) == ("evaluate", [3])
    done = typed("plan", "grid.yaml")
    assert done.stdout.splitlines()[-1] == "time: unknown; 1 evaluation to make, whose time is not recorded"
    assert done.stderr.startswith("1 run of 1 cell × 1 seed: 1 to evaluate; 1 evaluation to make")


def test_resume_goes_on_with_evaluations_alone(ran):
    (run,) = planned(1)
    completed(run)
    assert "nothing is unfinished" in typed("resume").stderr
    grid(WIDE)
    typed("evaluate", "grid.yaml")
    assert typed("resume").exit_code == 0
    assert ran.trains == [False, True]


def test_a_plan_says_why_some_cells_go_without_an_evaluation():
    Path("grid.yaml").write_text(
        "name: far\ntask: prediction\nposition: direct-sum\ndata: {corpus: synthetic-language}\n"
        "training: {length: 16, batch_tokens: 64}\naxes: {encoding: [sinusoidal, learned]}\n"
        "evaluations: {far: {length: [32, 1500], streams: 1}}\n"
    )
    told = typed("plan", "grid.yaml")
    reason = "a learned table has 1024 positions, and 1500 are in sight"
    assert told.stderr.splitlines()[0] == (
        f"note: evaluation `far` (streams 1, length 1500) cannot be made of 1 of 2 cells (learned): {reason}"
    )
    assert told.stderr.count("note: ") == 1
    runs = json.loads(typed("plan", "grid.yaml", "--json").stdout)["runs"]
    found = {run["choices"]["encoding"]: run["impossible_evaluations"] for run in runs}
    assert found == {
        "sinusoidal": [],
        "learned": [{"name": "far", "settings": {"streams": 1, "length": 1500}, "reason": reason}],
    }


def test_evaluations_of_other_code_are_told_and_stay(ran):
    (run,) = planned(1)
    completed(run)
    grid(WIDE)
    (cell,) = load_grid("grid.yaml").cells
    first, second = load_grid("grid.yaml").evaluations_of(cell.id)
    now = dict(evaluation_code_of(cell.spec).modules)
    with open_database(DB, write=True) as database:
        for evaluation, code in ((first, now), (second, now | {"kdx.models.beam": "0" * 64})):
            origin, metrics = {"code": code}, {"loss": 1.0}
            evaluations.record(
                database, 1, EvaluationResult(evaluation.id, evaluation.settings, "b" * 64, origin, metrics=metrics)
            )
    said = typed("evaluate", "grid.yaml").output
    assert "note: the code of 1 evaluation has changed since: kdx.models.beam; kdx retry" in said
    with open_database(DB, write=False) as database:
        assert len(evaluations.of_runs(database, [1])[1]) == 2
