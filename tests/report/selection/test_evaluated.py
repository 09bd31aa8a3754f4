"""An evaluation stands in a table with its own scores, of the seed that the training's validation selected."""

from collections.abc import Mapping
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest
from sweeps import cell, scored, sweep

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.load import load_grid
from kdx.grid.plan import TableSpec
from kdx.report.figures.charts import plotted
from kdx.report.figures.series import over_length
from kdx.report.selection.cells import State
from kdx.report.selection.evaluated import evaluated_cells
from kdx.report.sheets.notes import caption
from kdx.report.table.layout import lay_out
from kdx.report.tables import tables
from kdx.report.trace import find, to_json, trace
from kdx.store.records import EvaluationRecord, SweepRecord

ASKED = [{"name": "longer", "settings": {"length": length}} for length in (128, 256)]
ASKED.append({"name": "valid", "settings": {"split": "valid"}})
BY_LENGTH = {"name": "t", "rows": ["kernel"], "columns": ["evaluation.length"], "where": {"evaluation": "longer"}}


def evaluated_sweep(scores: Mapping[tuple[int, int], float], **table: object) -> SweepRecord:
    """One cell with two seeds, the second better on validation; (run, length) → what the evaluation gave."""
    each = cell("a", task="prediction", select={"metric": "valid/perplexity"})
    record = sweep([each], scored("a", (9.0, 9.5), (8.0, 8.5)), tables=[{**BY_LENGTH, **table}])
    known = each.spec.known
    assert known
    evaluations: dict[int, dict[str, EvaluationRecord]] = {}
    for (run, length), score in scores.items():
        settings = EvaluationSettings(length=length)
        result = resolve_evaluation(known, EvaluationRequest("x", settings))
        metrics = {"perplexity": score, "loss": score / 10}
        kept = EvaluationRecord(result.id, result.settings, 0.0, length, {"perplexity": f"at {length}"}, None, metrics)
        evaluations.setdefault(run, {})[result.id] = kept
    return replace(record, grid={**record.grid, "evaluations": ASKED}, evaluations=evaluations)


SCORES = {(0, 128): 7.0, (1, 128): 7.5, (0, 256): 6.0, (1, 256): 6.5}


def test_each_evaluation_has_its_scores_and_the_seed_stays_the_selected_one():
    (layout,) = lay_out(evaluated_sweep(SCORES), [TableSpec.model_validate(BY_LENGTH)])
    assert layout.columns == (("128",), ("256",))
    # Seed 0 is better in either evaluation, seed 1 in the validation of the training.
    assert [(result.seed, result.score) for result in layout.cells] == [(1, 7.5), (1, 6.5)]
    assert [result.scores for result in layout.cells] != [{}, {}]
    (requests,) = lay_out(evaluated_sweep(SCORES), [TableSpec.model_validate({**BY_LENGTH, "metric": "loss"})])
    assert [result.score for result in requests.cells] == [0.75, 0.65]


def test_what_is_not_made_yet_is_a_hole_and_a_table_without_the_factor_has_the_tests():
    (layout,) = lay_out(evaluated_sweep({(1, 128): 7.5}), [TableSpec.model_validate(BY_LENGTH)])
    assert [result.value for result in layout.cells] == [7.5, None]
    (own,) = lay_out(evaluated_sweep(SCORES), [TableSpec(name="own", rows=("kernel",))])
    assert [result.score for result in own.cells] == [8.5]


def test_an_evaluation_that_failed_is_said_to_have_failed():
    def with_failed(*runs: int) -> SweepRecord:
        record = evaluated_sweep(SCORES)
        known = {
            run: {
                key: replace(made, error="no weights", metrics={}) if run in runs else made
                for key, made in each.items()
            }
            for run, each in record.evaluations.items()
        }
        return replace(record, evaluations=known)

    def shown(record: SweepRecord) -> list[tuple[State, dict[str, int], int | None]]:
        (layout,) = lay_out(record, [TableSpec.model_validate(BY_LENGTH)])
        return [(result.state, result.counts, result.seed) for result in layout.cells]

    assert shown(with_failed(0)) == [(State.VALUE, {State.FAILED: 1}, 1)] * 2
    # Seed 0 does not stand in for seed 1, which the validation selected.
    assert shown(with_failed(1)) == [(State.MISSING, {State.FAILED: 1}, 1)] * 2
    assert shown(with_failed(0, 1)) == [(State.FAILED, {State.FAILED: 2}, 1)] * 2


def test_a_table_tells_how_its_numbers_came_about():
    (table,) = tables(evaluated_sweep(SCORES))
    assert any("Scores are those of evaluations" in note for note in table.notes)
    assert table.notes[0].startswith("Per cell, the score of the seed with the best valid/perplexity")
    (named,) = tables(evaluated_sweep(SCORES, columns=["evaluation"], rows=["evaluation.length"], where={}))
    flattered = ["flatters" in " ".join(each.notes) for each in (table, named)]
    assert flattered == [False, True]
    assert {"perplexity (length 128): at 128.", "perplexity (length 256): at 256."} <= set(table.definitions)
    # Numbers at two lengths do not compare.
    assert not table.differences


def test_the_name_of_an_evaluation_is_a_factor_too():
    record = evaluated_sweep(SCORES, columns=["evaluation"], rows=["evaluation.length"], where={})
    (table,) = tables(record)
    assert table.layout.columns == (("longer",), ("valid",))
    assert {evaluated_cell.record.labels["evaluation.split"] for evaluated_cell in evaluated_cells(record)} == {
        "test",
        "valid",
    }


@pytest.mark.parametrize(("scores", "figures"), [(SCORES, 1), ({(1, 128): 7.5}, 0)])
def test_scores_are_drawn_against_the_length(scores, figures):
    (table,) = tables(evaluated_sweep(scores))
    result = list(over_length(table))
    assert len(result) == figures
    for plot in result:
        svg = plotted(plot)
        assert "128" in svg and "256" in svg and "tokens of a stream" in svg


def test_a_number_of_an_evaluation_is_traced_to_its_runs_and_to_a_grid_that_makes_it_again(tmp_path: Path) -> None:
    record = evaluated_sweep(SCORES)
    (layout,) = lay_out(record, [TableSpec.model_validate(BY_LENGTH)])
    traced = trace(record, layout, find(layout, "exponential", "256"), {})
    assert (traced.cell.value, traced.record, traced.scored) == (
        6.5,
        record.cells[0],
        "perplexity of evaluation longer",
    )
    assert [(run.record.id, run.score) for run in traced.runs] == [(0, 6.0), (1, 6.5)]
    plain = to_json(traced)
    assert (plain["cell"], plain["evaluation"]["name"], plain["evaluation"]["settings"]["length"]) == (
        "a",
        "longer",
        256,
    )
    assert plain["spec"] == record.cells[0].spec.plain
    (tmp_path / "again.yaml").write_text(traced.grid)
    plan = load_grid(tmp_path / "again.yaml")
    (again,) = plan.cells
    assert again.spec == record.cells[0].spec.known
    (evaluation,) = plan.evaluations_of(again.id)
    assert traced.evaluation and evaluation.id == traced.evaluation.id


def test_a_table_by_default_says_that_it_has_no_evaluations() -> None:
    record = evaluated_sweep(SCORES)
    (own,) = tables(replace(record, grid={**record.grid, "tables": []}))
    note = "Evaluations are not in this table; tables: [{name: …, rows: …, columns: evaluation}] shows them."
    assert note in own.notes and all(note not in table.notes for table in tables(record))


def test_what_seeds_can_show_at_two_lengths_is_a_range() -> None:
    """Numbers at two lengths do not compare, so each length has its own spread."""
    cells = [cell(kernel, task="prediction", kernel=kernel) for kernel in ("rbf", "exponential")]
    runs = [*scored("rbf", (9.0, 9.5), (8.0, 8.5))]
    runs += [each._replace(id=10 + each.seed) for each in scored("exponential", (9.0, 9.5), (8.0, 8.5))]
    record = sweep(cells, runs, tables=[BY_LENGTH])
    evaluations: dict[int, dict[str, EvaluationRecord]] = {}
    for (run, length), score in {**SCORES, (10, 128): 8.0, (11, 128): 9.5, (10, 256): 6.1, (11, 256): 6.9}.items():
        known = cells[run // 10].spec.known
        assert known
        result = resolve_evaluation(known, EvaluationRequest("x", EvaluationSettings(length=length)))
        kept = EvaluationRecord(result.id, result.settings, 0.0, length, {}, None, {"perplexity": score})
        evaluations.setdefault(run, {})[result.id] = kept
    record = replace(record, grid={**record.grid, "evaluations": ASKED}, evaluations=evaluations)
    (table,) = tables(record)
    (line,) = [each for each in caption(table, best="*") if each.startswith("A true difference")]
    sizes = [group.minimum_detectable_difference(corrected=True) for group in table.groups]
    low, high = sorted(exp(size) for size in sizes if size)
    assert line.startswith(
        f"A true difference of {low:.2f} to {high:.2f} times the perplexity between two cells would "
    )


def two_encodings(**table: object) -> SweepRecord:
    """A sinusoid, which can be read far, and a learned table, which cannot, both with the shorter length."""
    spec = {"task": "prediction", "position": "direct-sum"}
    cells = [cell(word, **spec, encoding=word) for word in ("sinusoidal", "learned")]
    runs = [*scored("sinusoidal", (9.0, 9.5)), *(each._replace(id=1) for each in scored("learned", (9.0, 9.5)))]
    requests = [{"name": "longer", "settings": {"length": length}} for length in (128, 2000)]
    requests.append({"name": "wide", "settings": {"beam": 3}})
    shown = {"name": "t", "rows": ["encoding"], "columns": ["evaluation.length"], **table}
    record = sweep(cells, runs, tables=[shown])
    return replace(record, grid={**record.grid, "evaluations": requests})


def test_an_evaluation_that_a_cell_cannot_have_leaves_its_place_empty():
    record = two_encodings()
    assert [
        (evaluated_cell.cell_id, evaluated_cell.evaluation.settings["length"])
        for evaluated_cell in evaluated_cells(record)
    ] == [
        ("sinusoidal", 128),
        ("sinusoidal", 2000),
        ("learned", 128),
    ]
    (table,) = tables(record)
    assert (1, 1) not in table.layout.places and (0, 1) in table.layout.places
