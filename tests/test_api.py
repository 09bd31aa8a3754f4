"""kdx as a library, on the shipped example and on runs of its own."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pytest
from grids import written
from hypothesis import given
from hypothesis import strategies as st

import kdx
from kdx.api import RunEvaluation
from kdx.errors import DatabaseError, Faults, KdxError
from kdx.report.writers.arrow import stream
from kdx.store import claims, reading, recording
from kdx.store.database import open_database

EXAMPLE = Path(__file__).parents[1] / "runs.db.example"
SWEEP = "tsai2019/table1-mini"
CELLS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=3)
PLANNED = """
task: answer
data: {corpus: copy}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 2, batch_tokens: 64, warmup: 1}
axes: {kernel: [exponential, rbf]}
"""


def test_a_grid_is_its_plan():
    plan = kdx.load_grid("quickstart")
    assert plan.name == "quickstart" and len(plan.runs) == len(plan.cells) * len(plan.seeds)
    assert {run.seed for run in kdx.load_grid("quickstart", given=["seeds=[7]"]).runs} == {7}
    with pytest.raises(Faults):
        kdx.load_grid("no-such-grid")


@pytest.mark.slow
def test_what_a_sweep_would_do_is_reported_with_and_without_a_database(tmp_path):
    fresh = kdx.plan("quickstart", tmp_path / "absent.db")
    assert {decision.action.value for decision in fresh} == {"start"}
    assert not (tmp_path / "absent.db").exists()
    grid = written(tmp_path, PLANNED)
    run = [sys.executable, "-m", "kdx", "sweep", str(grid), "--db", str(tmp_path / "runs.db")]
    subprocess.run(run, check=True, capture_output=True)
    done = kdx.plan(kdx.load_grid(grid), tmp_path / "runs.db")
    assert [decision.action.value for decision in done] == ["skip", "skip"]


def test_sweeps_runs_and_curves_are_frozen_records():
    sweep, *_ = kdx.sweeps(EXAMPLE)
    runs = kdx.runs(SWEEP, EXAMPLE)
    assert sweep.name == SWEEP and sum(sweep.counts.values()) == len(runs)
    assert runs == kdx.runs(database=EXAMPLE)
    assert [*dict.fromkeys(run.cell for run in runs)] == [cell.id for cell in kdx.load_grid(SWEEP).cells]
    with pytest.raises(AttributeError):
        runs[0].seed = 3  # type: ignore[misc]
    best = [run for run in runs if run.selected]
    assert len(best) == len({run.cell for run in runs})
    assert all(run.metrics[run.metric.replace("valid/", "test/")] == run.test_score for run in runs)
    assert {run.spec.task for run in runs} == {"translation", "prediction"}
    for curve in kdx.curves(SWEEP, ["valid/loss"], EXAMPLE):
        assert list(curve.steps) == sorted(curve.steps) and len(curve.steps) == len(curve.values)
    assert kdx.curves(SWEEP, "valid/loss", EXAMPLE) == kdx.curves(SWEEP, ["valid/loss"], EXAMPLE)
    with pytest.raises(KdxError, match=r"^no run has recorded `valid/nothing`\n  allowed: .*valid/loss"):
        kdx.curves(SWEEP, ["valid/nothing"], EXAMPLE)


def test_evaluations_are_records():
    assert not kdx.evaluations(SWEEP, EXAMPLE)
    made = kdx.evaluations("extrapolation/mini", EXAMPLE)
    runs = {run.id: run for run in kdx.runs("extrapolation/mini", EXAMPLE)}
    assert {each.run for each in made} == {*runs} and len(made) == 4 * len(runs)
    for each in made:
        assert (each.labels["approach"], each.seed) == (runs[each.run].labels["approach"], runs[each.run].seed)
        (row,) = each.rows()
        assert (row["run"], row["perplexity"]) == (each.run, each.metrics["perplexity"]) and each.error is None
    assert {each.settings["length"] for each in made} == {64, 128, 256, 512}


def test_an_axis_with_the_name_of_a_column_has_a_column_of_its_own():
    run, curve = kdx.runs(database=EXAMPLE)[0], kdx.curves(database=EXAMPLE)[0]
    named = replace(run, labels={"seed": "odd", "kernel": "rbf"})
    assert (named.row()["seed"], named.row()["factor seed"], named.row()["kernel"]) == (run.seed, "odd", "rbf")
    assert type(named).types([named])["factor seed"] == str | None
    row = next(iter(replace(curve, labels={"step": "odd"}).rows()))
    assert (row["step"], row["factor step"]) == (curve.steps[0], "odd")


def test_records_are_frames():
    runs = kdx.runs(database=EXAMPLE).to_pandas()
    assert len(runs) == len(kdx.runs(database=EXAMPLE))
    assert {"run", "cell", "approach", "seed", "state", "valid_score", "test_score", "selected"} <= set(runs.columns)
    curves = kdx.curves(database=EXAMPLE).to_pandas()
    assert list(curves.columns) == ["run", "task", "approach", "seed", "metric", "step", "value"]
    assert set(curves["metric"]) == {"train/loss", "valid/loss"}
    assert kdx.sweeps(EXAMPLE).to_pandas()["sweep"].tolist()[0] == SWEEP
    table = kdx.table(database=EXAMPLE).to_pandas()
    assert isinstance(table, pandas.DataFrame) and {"approach", "metric", "n", "score", "mean", "sd"} <= set(table)


@pytest.mark.parametrize("wanted", [kdx.runs, kdx.curves, kdx.table, kdx.sweeps])
def test_polars_and_duckdb_read_by_arrow_what_pandas_gets(wanted):
    records = wanted(database=EXAMPLE)
    rows = records.to_pandas().convert_dtypes().to_dict("records")
    frame = polars.DataFrame(records)
    known = [{name: None if pandas.isna(value) else value for name, value in row.items()} for row in rows]
    assert frame.to_dicts() == known and frame.height > 0
    assert duckdb.sql("SELECT count(*) FROM records").fetchall() == [(frame.height,)]


@given(rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys("ab", CELLS)), max_size=5))
def test_any_rows_are_a_stream(rows):
    frame = polars.DataFrame(Streamed(rows, dict.fromkeys("ab", Any)))
    assert frame.height == len(rows)
    for name in frame.columns:
        for row, value in zip(rows, frame[name].to_list(), strict=True):
            expected = row.get(name)
            assert value == expected or value == str(expected) or value == float(expected)


@given(data=st.data())
def test_a_column_has_its_declared_type_whatever_its_rows_have(data):
    numbers = st.floats(allow_nan=False)
    kinds = {
        bool: (polars.Boolean, st.booleans() | st.integers(0, 1)),  # SQLite has no truth values
        int: (polars.Int64, st.integers(-(2**63), 2**63 - 1)),
        float: (polars.Float64, numbers),
        float | None: (polars.Float64, numbers | st.integers(-(2**53), 2**53) | st.none()),
        str: (polars.String, st.text(max_size=3)),
        str | None: (polars.String, st.text(max_size=3) | st.none()),
    }
    types = data.draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from([*kinds])))
    some = st.fixed_dictionaries({}, optional={name: kinds[kind][1] for name, kind in types.items()})
    rows = data.draw(st.lists(some, max_size=3))
    frame = polars.DataFrame(Streamed(rows, types))
    assert dict(frame.schema) == {name: kinds[kind][0] for name, kind in types.items()}
    assert frame.to_dicts() == [dict.fromkeys(types) | row for row in rows]


def test_what_a_column_cannot_hold_makes_it_text():
    rows = [{"whole": 2.5, "number": "none"}, {"whole": 1, "number": 1.5}]
    frame = polars.DataFrame(Streamed(rows, {"whole": int, "number": float}))
    assert frame.to_dicts() == [{"whole": 2.5, "number": "none"}, {"whole": 1.0, "number": "1.5"}]


class Streamed:
    def __init__(self, rows, types):
        self.rows, self.types = rows, types

    def __arrow_c_stream__(self, requested_schema=None):
        return stream(self.rows, self.types).__arrow_c_stream__(requested_schema)


@pytest.fixture
def states(tmp_path) -> dict[str, Path]:
    """Databases of one sweep: planned alone, with a run that has ended, and with all of them."""
    plan = kdx.load_grid(written(tmp_path, PLANNED))
    made = {}
    for ended, name in enumerate(("planned", "some", "all")):
        made[name] = tmp_path / f"{name}.db"
        with open_database(made[name], write=True, create=True) as database:
            for run in reading.runs(database, recording.register(database, plan))[:ended]:
                assert claims.claim(database, run.id, "me", 60)
                writer = recording.RunWriter(database, run.id, "me", 1)
                writer.record([("train/loss", 2, 1.5)], 2)
                writer.complete(2.0, 2, 2.5, {}, 2)
    return made


@pytest.mark.parametrize("wanted", [kdx.runs, kdx.curves, kdx.evaluations, kdx.table])
def test_columns_have_the_same_types_before_and_after_there_are_scores(states, wanted):
    results = [wanted(database=database) for database in states.values()]
    fixed = {run: kind for result in results for run, kind in polars.DataFrame(result).schema.items()}
    dtypes = [dict(result.to_pandas().dtypes) for result in results]
    for result, dtype in zip(results, dtypes, strict=True):
        schema = dict(polars.DataFrame(result).schema)
        assert schema and schema == {name: fixed[name] for name in schema}
        assert dtype == {name: dtypes[-1].get(name, dtype[name]) for name in schema}
    numbers = {"valid_score", "test_score", "seconds", "score", "mean", "sd", "value"} & fixed.keys()
    assert all(fixed[name] == polars.Float64 and dtypes[0][name] == "float64" for name in numbers)


@pytest.mark.parametrize("wanted", [kdx.runs, kdx.curves, kdx.table, kdx.evaluations])
def test_what_reads_no_arrow_is_sent_to_the_method_instead_of_reading_something_else(wanted):
    for read in (pandas.DataFrame, numpy.asarray):
        with pytest.raises(KdxError, match=r"hint: \.to_pandas\(\) returns the data frame"):
            read(wanted(database=EXAMPLE))


def test_an_axis_that_is_called_as_a_setting_of_evaluations_is_has_its_own_column():
    made = RunEvaluation(1, {"length": "short"}, 0, "longer", {"length": 64}, {"loss": 1.0}, None, None)
    row = made.row()
    assert (row["factor length"], row["length"]) == ("short", 64)
    assert set(RunEvaluation.types([made])) == set(row)


def test_what_is_read_shows_itself_in_a_notebook_and_in_a_line():
    runs, table = kdx.runs(database=EXAMPLE), kdx.table(database=EXAMPLE)
    assert repr(kdx.evaluations(database=EXAMPLE)) == "<0 × RunEvaluation>"
    assert (repr(runs), repr(table)) == (f"<{len(runs)} × Run>", f"<table {table.table.layout.name} of 8 cells>")
    assert len(repr(runs[0])) < 500 and len(repr(kdx.curves(database=EXAMPLE)[0])) < 300
    for shown in (runs, runs[0], table, kdx.evaluations(database=EXAMPLE)):
        page = shown._repr_html_()
        assert page.startswith('<div style="background: var(--paper); color: var(--ink); ')
        assert page.endswith("</div>") and "<script" not in page
    assert table.table.layout.name in table._repr_html_() and runs[0].cell in runs[0]._repr_html_()
    assert str(table) == table.text() and "\n" in str(table)
    (first, *_), sweeps = kdx.curves(database=EXAMPLE), kdx.sweeps(EXAMPLE)
    ends = (first.steps[-1], len(first.steps), f"{first.values[0]:.5g}")
    assert all(f">{end}<" in first._repr_html_() for end in ends) and "first step" in first._repr_html_()
    planned = f"{datetime.fromtimestamp(sweeps[0].created, UTC):%Y-%m-%d %H:%M:%S} UTC"
    assert planned in sweeps._repr_html_() and planned in sweeps[0]._repr_html_()
    hostile = replace(runs[0], labels={"<b>": "<script>alert(1)</script>"})
    assert "<script" not in hostile._repr_html_()


def test_a_plan_is_a_line_and_each_of_its_decisions_another():
    plan = kdx.load_grid("quickstart")
    assert repr(plan) == "<plan quickstart: 36 runs of 12 cells>"
    decision = kdx.plan(plan, "absent.db")[0]
    cell = f"<cell {plan.cells[0].id[:8]}: translation, No position, exponential>"
    assert repr(decision) == f"<start seed 0 of {cell}: {decision.reason}>"


def test_the_names_of_the_interface_are_found_by_completion():
    assert dir(kdx) == kdx.__all__ == sorted(kdx.__all__)
    alone = "import kdx; assert 'kdx.api' not in __import__('sys').modules; print(kdx.errors.KdxError.__name__)"
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True)
    assert done.stdout == "KdxError\n", done.stderr


def test_what_is_no_grid_and_no_sweep_is_said():
    for wrong in ({"task": "answer"}, 3, None):
        with pytest.raises(KdxError, match=r"is no grid\n  hint: .*load_grid\('quickstart'\)"):
            kdx.load_grid(wrong)
        with pytest.raises(KdxError, match="is no grid"):
            kdx.plan(wrong)
    for wanted in (kdx.runs, kdx.curves, kdx.evaluations, kdx.table):
        with pytest.raises(KdxError, match=r"`3` is no name of a sweep\n  hint: kdx.sweeps\(\)"):
            wanted(3, database=EXAMPLE)


def test_a_record_stands_for_its_name_or_its_id():
    sweeps = kdx.sweeps(EXAMPLE)
    assert kdx.runs(sweeps[1], EXAMPLE) == kdx.runs(sweeps[1].name, EXAMPLE)
    assert kdx.table(sweeps[1], database=EXAMPLE).text() == kdx.table(sweeps[1].name, database=EXAMPLE).text()
    several = kdx.table(sweeps[:2], database=EXAMPLE)
    assert several.text() == kdx.table([sweep.name for sweep in sweeps[:2]], database=EXAMPLE).text()
    with pytest.raises(KdxError, match="the folder with the files of its runs is missing"):
        kdx.load_run(next(run for run in kdx.runs(SWEEP, EXAMPLE) if run.id == 1), EXAMPLE)


def test_a_model_is_asked_for_by_its_id_and_the_database_comes_last():
    for run in ("seven", "", 1.5, EXAMPLE):
        with pytest.raises(KdxError, match=r"is no id of a run\n  hint: .*load_run\(5, 'runs.db'\)"):
            kdx.load_run(run, EXAMPLE)
    with pytest.raises(
        KdxError, match=r"files: the folder with the files of its runs is missing\n  hint: .* --files or KDX_FILES"
    ):
        kdx.load_run("1", str(EXAMPLE))


def test_without_pandas_the_line_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        KdxError,
        match=r"^pandas is not installed\n  hint: in a clone of kdx: pip install -c constraints.txt '.\[pandas\]'$",
    ):
        kdx.runs(database=EXAMPLE).to_pandas()


def test_where_no_database_is_named_it_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("KDX_DB", str(EXAMPLE))
    assert [sweep.name for sweep in kdx.sweeps()] == [sweep.name for sweep in kdx.sweeps(EXAMPLE)]
    assert kdx.runs() == kdx.runs(database=str(EXAMPLE)) and not kdx.evaluations()
    assert {curve.metric for curve in kdx.curves()} == {"train/loss", "valid/loss"}
    assert kdx.table().text() == kdx.table(database=EXAMPLE).text()
    assert {decision.action.value for decision in kdx.plan("quickstart")} == {"start"}


@pytest.mark.slow
def test_a_table_is_that_of_the_report():
    def report(*options: str) -> str:
        run = [sys.executable, "-m", "kdx", "report", "--db", str(EXAMPLE), *options]
        return subprocess.run(run, capture_output=True, text=True, check=True, env={"COLUMNS": "100"}).stdout

    shown = kdx.table(SWEEP, database=EXAMPLE)
    assert shown.markdown() in report("--format", "markdown")
    assert shown.latex() in report("--format", "latex") + "\n"
    assert [line.split() for line in shown.text().splitlines()] == [
        line.split() for line in report("--table", shown.table.layout.name).splitlines()
    ][: len(shown.text().splitlines())]
    with pytest.raises(KdxError, match="there is no table `mine`"):
        kdx.table(name="mine", database=EXAMPLE)


def test_what_is_not_there_is_reported(tmp_path):
    with pytest.raises(DatabaseError):
        kdx.sweeps(tmp_path / "absent.db")
    with pytest.raises(KdxError, match="no sweep `mine`"):
        kdx.runs("mine", EXAMPLE)
    with pytest.raises(KdxError, match="no sweep is named"):
        kdx.table([], database=EXAMPLE)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kdx.nothing


def test_nothing_but_a_model_loads_torch_and_no_module_takes_the_name_of_a_function():
    loaded = (
        "import sys, kdx\n"
        "assert not {'torch', 'sqlalchemy', 'pydantic'} & set(sys.modules)\n"
        f"kdx.plan('quickstart', '{EXAMPLE}'); kdx.runs(database='{EXAMPLE}'); kdx.table(database='{EXAMPLE}').text()\n"
        "assert 'torch' not in sys.modules\n"
        "import kdx.run_files.files, kdx.sweep.decide, kdx.report.tables\n"
        "assert callable(kdx.runs) and callable(kdx.table) and callable(kdx.plan) and callable(kdx.sweeps)"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
