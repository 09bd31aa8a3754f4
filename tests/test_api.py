"""kdx as a library, on the shipped example and on runs of its own."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from grids import written
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert

import kdx
from kdx.errors import DatabaseError, Faults, KdxError
from kdx.report.writers.arrow import stream
from kdx.store.database import open_database
from kdx.store.schema import bits_of, evaluation, evaluation_metric

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


def test_evaluations_are_records(tmp_path):
    assert not kdx.evaluations(SWEEP, EXAMPLE)
    copy = tmp_path / "runs.db"
    shutil.copy(EXAMPLE, copy)
    with open_database(copy, write=True) as database, database.write() as connection:
        made = {"id": 1, "run_id": 1, "settings_id": "a" * 32, "settings": {"beam": 4}, "made": 4.0}
        connection.execute(insert(evaluation).values(made))
        score = {"evaluation_id": 1, "name": "loss", "value": 1.25, "bits": bits_of(1.25)}
        connection.execute(insert(evaluation_metric).values(score))
    (one,) = kdx.evaluations(SWEEP, copy)
    (run,) = (run for run in kdx.runs(SWEEP, copy) if run.id == one.run)
    assert (one.labels, one.seed) == (run.labels, run.seed)
    assert (one.run, one.settings["beam"], dict(one.metrics), one.error) == (1, 4, {"loss": 1.25}, None)
    (row,) = one.rows()
    assert (row["run"], row["beam"], row["loss"]) == (1, 4, 1.25)


def test_records_are_frames():
    pandas = pytest.importorskip("pandas")
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
    import duckdb
    import polars

    records = wanted(database=EXAMPLE)
    rows = records.to_pandas().convert_dtypes().to_dict("records")
    frame = polars.DataFrame(records)
    known = [{name: None if pandas_null(value) else value for name, value in row.items()} for row in rows]
    assert frame.to_dicts() == known and frame.height > 0
    assert duckdb.sql("SELECT count(*) FROM records").fetchall() == [(frame.height,)]


def pandas_null(value: object) -> bool:
    import pandas

    return bool(pandas.isna(value))


@given(rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys("ab", CELLS)), max_size=5))
def test_any_rows_are_a_stream(rows):
    import polars

    frame = polars.DataFrame(Streamed(rows))
    assert frame.height == len(rows)
    for name in frame.columns:
        for row, value in zip(rows, frame[name].to_list(), strict=True):
            expected = row.get(name)
            assert value == expected or value == str(expected) or value == float(expected)


class Streamed:
    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return stream(self.rows).__arrow_c_stream__(requested_schema)


def test_what_is_read_shows_itself_in_a_notebook_and_in_a_line():
    runs, table = kdx.runs(database=EXAMPLE), kdx.table(database=EXAMPLE)
    assert (repr(runs), repr(table)) == (f"<{len(runs)} × Run>", f"<table {table.table.layout.name} of 8 cells>")
    assert len(repr(runs[0])) < 500 and len(repr(kdx.curves(database=EXAMPLE)[0])) < 300
    for shown in (runs, runs[0], table, kdx.evaluations(database=EXAMPLE)):
        page = shown._repr_html_()
        assert page.startswith('<div style="background: var(--paper); color: var(--ink); ')
        assert page.endswith("</div>") and "<script" not in page
    assert table.table.layout.name in table._repr_html_() and runs[0].cell in runs[0]._repr_html_()
    hostile = replace(runs[0], labels={"<b>": "<script>alert(1)</script>"})
    assert "<script" not in hostile._repr_html_()


def test_the_names_of_the_interface_are_found_by_completion():
    assert set(kdx.__all__) <= set(dir(kdx)) and kdx.__all__ == sorted(kdx.__all__)


def test_a_model_is_asked_for_by_its_id_and_the_database_comes_last():
    for run in ("seven", "", 1.5, EXAMPLE):
        with pytest.raises(KdxError, match=r"is no id of a run\n  hint: .*load_run\(5, 'runs.db'\)"):
            kdx.load_run(run, EXAMPLE)
    with pytest.raises(KdxError, match="run 1, which is completed, has no weights"):
        kdx.load_run("1", str(EXAMPLE))


def test_without_pandas_the_line_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(KdxError, match=r"^pandas is not installed\n  hint: pip install 'kdx\[pandas\]'$"):
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
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kdx.nothing


@pytest.fixture
def loaded() -> Iterator[str]:
    yield (
        "import sys, kdx\n"
        "assert not {'torch', 'sqlalchemy', 'pydantic'} & set(sys.modules)\n"
        f"kdx.plan('quickstart', '{EXAMPLE}'); kdx.runs(database='{EXAMPLE}'); kdx.table(database='{EXAMPLE}').text()\n"
        "assert 'torch' not in sys.modules\n"
        "import kdx.run_files.files, kdx.sweep.decide, kdx.report.table.table\n"
        "assert callable(kdx.runs) and callable(kdx.table) and callable(kdx.plan) and callable(kdx.sweeps)"
    )


def test_nothing_but_a_model_loads_torch_and_no_module_takes_the_name_of_a_function(loaded):
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
