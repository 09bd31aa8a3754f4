"""`kdx report` on a real database."""

import csv
import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from looked_after import claimed, refused, registered, typed

from kdx.cli.report import _references
from kdx.data.find_text import find_text
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.sections import Data
from kdx.report.writers import Format
from kdx.store.claims import claim
from kdx.store.database import open_database
from kdx.store.reading import load_sweep
from kdx.store.recording import RunWriter, register
from kdx.store.sqlite.database import Sqlite

GRID = """\
name: nightly
task: translation
data: {corpus: synthetic-translation}
axes:
  kernel: [exponential, rbf]
seeds: 2
tables:
  - {name: kernels, caption: Kernels, rows: kernel}
  - {name: tasks, rows: [task, kernel]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a grid and its `runs.db`: rbf is finished, of exponential one run is."""
    (tmp_path / "grid.yaml").write_text(GRID)
    plan = load_grid("grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        register(database, plan)
        scores = {("exponential", 0): (29.0, 28.5), ("rbf", 0): (30.0, 31.25), ("rbf", 1): (31.0, 30.25)}
        record = load_sweep(database)
        kernels = {cell.id: cell.labels["kernel"] for cell in record.cells}
        for run in record.runs:
            if (kernels[run.cell_id], run.seed) in scores:
                attempt = claim(database, run.id, "me", 60)
                assert attempt is not None
                valid, test = scores[kernels[run.cell_id], run.seed]
                RunWriter(database, run.id, "me", attempt).complete(valid, 10, test, {}, 10)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_tables_go_to_stdout_and_the_closing_line_to_stderr() -> None:
    result = typed("report")
    assert "kernels: Kernels\n" in result.stdout
    assert "rbf           30.25  30.75 ± 0.71 (2)" in result.stdout
    assert "exponential   28.50               (1)" in result.stdout
    assert result.stderr == "2 cells: 2 with a score; next: kdx resume nightly\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attention", "1: the cat"), "--attention is drawn on a page"),
        (("--format", "html", "--attention", "99: the cat"), "--attention 99: the cat: nightly has no such run"),
        (("--format", "html", "--attention", "rbf"), "--attention rbf: nightly has no such run"),
        (("--format", "html", "--attention", "1:"), "--attention 1:: there is no line to read"),
        (("--format", "html", "--attention", "1: the cat"), "the folder with the files of its runs is missing"),
    ],
)
def test_attention_is_of_a_run_with_weights_and_of_a_line_and_drawn_on_a_page(
    arguments: tuple[str, ...], message: str
) -> None:
    assert message in str(refused("report", *arguments))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_full_notes_say_how_metrics_were_made_and_where_cells_differ(form: str) -> None:
    def report(*options: str) -> str:
        return " ".join(typed("report", "--format", form, *options).stdout.split())

    short, full = report(), report("--notes", "full")
    assert "Apart from task and kernel, compared cells also differ in seeds." in short
    assert "how cells differ" not in short and "higher is better" not in short
    assert "how cells differ" in full and "higher is better." in full


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["nightly", "grid.yaml"])
def test_a_sweep_goes_by_its_name_or_its_grid_file(name: str) -> None:
    assert "kernels: Kernels" in typed("report", name).stdout


@pytest.mark.usefixtures("folder")
def test_one_table_as_markdown() -> None:
    stdout = typed("report", "--table", "kernels", "--format", "markdown").stdout
    assert stdout.startswith(
        "<!-- kdx report nightly --table kernels -->\n"
        "**kernels**: Kernels\n\n| kernel | BLEU ↑ |\n| :--- | ---: |\n| exponential | 28.50 (1) |\n"
    )
    assert "tasks" not in stdout


@pytest.mark.usefixtures("folder")
def test_latex_names_the_packages_that_it_takes_and_holds_every_table() -> None:
    stdout = typed("report", "--format", "latex").stdout
    made_by = "% kdx report nightly --table kernels\n"
    assert stdout.startswith(
        f"% \\usepackage{{array,booktabs,graphicx,longtable,lscape,rotating}}\n{made_by}\\begin{{table}}[!ht]\n"
    )
    assert stdout.count("\\begin{table}") == 2


def test_a_table_that_does_not_fit_its_cells_is_told_with_database_and_sweep(folder: Path) -> None:
    with open_database("runs.db", write=True) as database, database.write() as connection:
        connection.exec_driver_sql(
            """UPDATE sweep SET grid = replace(grid, '"kernels", "caption"', '"k", "metric": "x", "caption"')"""
        )
        connection.exec_driver_sql("""UPDATE sweep SET grid = replace(grid, '"kernel"', '"kernle"')""")
    with pytest.raises(KdxError, match=r"^runs.db, sweep nightly: table `.*`: unknown factor `kernle`\n  hint: .*"):
        typed("report")


@pytest.mark.usefixtures("folder")
def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    fault = refused("report", "--table", "kernel")
    assert str(fault) == "there is no table `kernel`\n  allowed: kernels, tasks\n  hint: did you mean `kernels`?"


def test_the_closing_line_names_the_database_that_is_not_the_default(folder: Path) -> None:
    (folder / "runs.db").rename(folder / "my runs.db")
    assert typed("report", "--db", "my runs.db").stderr.endswith("next: kdx resume nightly --db 'my runs.db'\n")


@pytest.mark.parametrize(
    ("change", "command"),
    [
        (
            "UPDATE evaluation SET error = 'no weights' WHERE id = 1",
            "kdx evaluate extrapolation/mini --failed --db my.db",
        ),
        ("DELETE FROM evaluation WHERE id = 1", "kdx evaluate extrapolation/mini --db my.db"),
    ],
)
def test_the_closing_line_says_how_an_evaluation_is_made_that_failed_or_is_missing(change, command) -> None:
    shutil.copy(Path(__file__).parents[2] / "runs.db.example", "my.db")
    Path("my.db").chmod(0o644)
    with closing(sqlite3.connect("my.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM evaluation_metric WHERE evaluation_id = 1")
        connection.execute("DELETE FROM evaluation_document WHERE evaluation_id = 1")
        connection.execute(change)
    assert typed("report", "extrapolation/mini", "--db", "my.db").stderr.endswith(f"; next: {command}\n")


def test_a_report_writes_nothing(folder: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    (folder / "runs.db").chmod(0o444)
    typed("report")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize("format", [*Format, "--json"])
@pytest.mark.parametrize(("field", "known", "other"), [("kernel", "rbf", "mine"), ("norm", "post", "none")])
def test_a_cell_with_a_word_of_another_kdx_is_shown_as_recorded(
    folder: Path, format: str, field: str, known: str, other: str, reword
) -> None:
    with closing(sqlite3.connect("runs.db")) as connection, connection:
        reword(connection, lambda cell: cell.update({field: other}) if cell[field] == known else None)
    done = typed("report", *([format] if format.startswith("-") else ["--format", format]))
    assert "30.25" in done.stdout
    if format in ("text", "markdown"):
        assert "This kdx does not know" in done.stdout


TUESDAY = (
    GRID.replace("nightly", "tuesday").replace("[exponential, rbf]", "[rbf, linear]").replace("seeds: 2", "seeds: 3")
)
BY_SWEEP = "tables:\n- {name: days, caption: Days, rows: kernel, columns: sweep}\n"


@pytest.fixture
def days(folder: Path) -> Path:
    """A second sweep, `tuesday`: it shares rbf, of which it has one seed more, finished, and has linear."""
    (folder / "days.yaml").write_text(BY_SWEEP)
    first, *_ = runs = registered(TUESDAY, "tuesday.yaml")
    (run,) = (run for run in runs if (run.cell_id, run.seed) == (first.cell_id, 2))
    claimed(run)
    with open_database("runs.db", write=True) as database:
        RunWriter(database, run.id, "me", 1).complete(32.0, 10, 32.5, {}, 10)
    return folder


@pytest.mark.usefixtures("days")
def test_several_sweeps_make_one_table_of_all_their_cells() -> None:
    for named in (("nightly", "tuesday"), ("grid.yaml", "tuesday.yaml")):
        result = typed("report", *named, "--format", "markdown")
        assert "| exponential | 28.50 (1) |\n| rbf | 32.50 (31.33 ± 1.13, n = 3) |\n| linear | – |\n" in result.stdout
        assert "Cells are of the sweeps nightly and tuesday." in result.stdout
        assert result.stderr == "3 cells: 2 with a score, 1 missing; next: kdx resume nightly && kdx resume tuesday\n"


@pytest.mark.usefixtures("days")
def test_a_table_of_a_file_has_a_shared_cell_in_the_column_of_each_sweep() -> None:
    shown = typed("report", "nightly", "tuesday", "--tables", "days.yaml", "--format", "markdown").stdout
    assert "nightly" in shown.splitlines()[3] and "tuesday" in shown.splitlines()[3]
    (row,) = (line for line in shown.splitlines() if line.startswith("| rbf"))
    assert row.count("32.50 (31.33 ± 1.13, n = 3)") == 2
    # Without a sweep, it is of the one planned last.
    alone = typed("report", "--tables", "days.yaml", "--format", "markdown").stdout
    assert "tuesday" in alone and "nightly" not in alone


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize("form", ["text", "latex", "html"])
def test_every_format_names_the_sweeps(form: str) -> None:
    stdout = typed("report", "nightly", "tuesday", "--tables", "days.yaml", "--format", form).stdout
    assert "Cells are of the sweeps nightly and tuesday." in " ".join(stdout.split())


@pytest.mark.usefixtures("days")
def test_a_page_of_a_table_by_sweep_has_the_runs_of_each_cell() -> None:
    page = typed("report", "nightly", "tuesday", "--tables", "days.yaml", "--format", "html").stdout
    # Two of exponential, three of rbf, three of linear.
    assert page.count('<tr id="run-') == 8
    links = set(re.findall(r'href="#(run-[^"]+)"', page))
    assert links and links <= set(re.findall(r'id="(run-[^"]+)"', page))


@pytest.mark.usefixtures("days")
def test_csv_and_json_say_which_sweep_a_cell_is_of() -> None:
    together = list(csv.DictReader(io.StringIO(typed("report", "nightly", "tuesday", "--format", "csv").stdout)))
    assert {row["kernel"]: row["sweep"] for row in together} == {
        "exponential": "nightly",
        "rbf": "nightly, tuesday",
        "linear": "tuesday",
    }
    split = typed("report", "nightly", "tuesday", "--tables", "days.yaml", "--format", "csv").stdout
    rows = {(row["kernel"], row["sweep"]): row["score"] for row in csv.DictReader(io.StringIO(split))}
    assert rows["rbf", "nightly"] == rows["rbf", "tuesday"] == "32.5"
    report = json.loads(typed("report", "nightly", "tuesday", "--json").stdout)
    assert (report["sweep"], report["sweeps"]) == ("nightly, tuesday", ["nightly", "tuesday"])
    assert json.loads(typed("report", "nightly", "--json").stdout)["sweeps"] == ["nightly"]


def test_a_fault_of_a_file_of_tables_is_told_at_its_place(days: Path) -> None:
    (days / "days.yaml").write_text("tables:\n- {name: t, rows: [krenel]}\n")
    fault = str(refused("report", "nightly", "tuesday", "--tables", "days.yaml"))
    assert fault.startswith("days.yaml:2:20: table `t`: unknown factor `krenel`\n  hint: ")
    assert "hint: did you mean `kernel`?" in fault


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize("options", [["--format", "html"], ["--paired-ar"], ["--tables", "days.yaml"]], ids=" ".join)
def test_sweeps_are_read_from_one_state_of_the_database(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    transactions: list[str] = []
    real = Sqlite._begin
    monkeypatch.setattr(
        Sqlite, "_begin", lambda self, driver, mode: (transactions.append(mode.value), real(self, driver, mode))[1]
    )
    typed("report", "nightly")
    plain = len(transactions)
    typed("report", "nightly", "tuesday", *options)
    assert len(transactions) == 2 * plain


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["report", "claims"])
def test_json_and_a_format_exclude_each_other_and_a_variable_gives_way(command, monkeypatch):
    assert str(refused(command, "--json", "--format", "latex")) == "--json and --format exclude each other"
    monkeypatch.setenv("KDX_FORMAT", "latex")
    assert typed(command, "--json").stdout.startswith("{")


def test_references_are_the_last_side_of_the_test_split_read_once(data_home, monkeypatch):
    read = []
    monkeypatch.setattr("kdx.data.find_text.find_text", lambda *of: read.append(of) or find_text(*of))
    data = Data(corpus="synthetic-translation", train_lines=20)
    lines = _references(data)
    assert lines and all(line == " ".join(line.split()) for line in lines)
    assert _references(data) is lines and read == [(data,)]
