"""`kdx query` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import completed, planned, refused, typed
from terminal import LiveTerminal

from kdx.store.schema import metadata
from kdx.store.views import VIEWS

SELECTED = "SELECT run_id, kernel, test_score FROM runs WHERE selected"


@pytest.fixture(autouse=True)
def folder(tmp_path) -> Path:
    for run, score in zip(planned(2), (2.5, 2.25), strict=True):
        completed(run, score)
    return tmp_path


def test_an_answer_goes_to_stdout_and_its_length_to_stderr():
    done = typed("query", SELECTED)
    assert done.stdout == "run_id  kernel       test_score\n     2  exponential        2.25\n"
    assert (done.stderr, done.exit_code) == ("1 row\n", 0)


def test_csv_and_json():
    assert typed("query", SELECTED, "--csv").stdout == '"run_id","kernel","test_score"\n2,"exponential",2.25\n'
    shown = json.loads(typed("query", SELECTED, "--json").stdout)
    assert shown == [{"run_id": 2, "kernel": "exponential", "test_score": 2.25}]


def test_the_schema_shows_every_view_table_and_column():
    shown = typed("query", "--schema").stdout
    for relation in (*VIEWS, *metadata.tables.values()):
        assert f" {relation.name}: {relation.comment}\n" in shown
    plain = {relation["name"]: relation for relation in json.loads(typed("query", "--schema", "--json").stdout)}
    assert plain["curves"]["columns"]["step"] == "optimiser step, from 0"
    assert list(plain)[:3] == ["cells", "runs", "curves"]


def test_a_terminal_gets_the_first_rows(terminal, folder):
    statement = (
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a LIMIT 1100) SELECT n, char(27) AS x FROM a"
    )
    code, seen = LiveTerminal(terminal, "query", statement).end()
    assert code == 0
    assert "1000  \\x1b" in seen and "1001" not in seen
    assert "the first 1,000 rows; --csv or --json gives all" in seen and "1,100 rows" in seen


def test_a_reader_that_has_enough_ends_it(terminal):
    statement = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a LIMIT 99999) SELECT n FROM a"
    done = terminal.type(f"kdx query '{statement}' --csv | head -1")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1), done.stderr
    assert done.stderr == "99,999 rows\n"


def test_what_is_no_question_is_refused_in_one_message():
    for of_table_or_view in ("DELETE FROM run", "DELETE FROM runs", "UPDATE curves SET value = 1"):
        assert str(refused("query", of_table_or_view)) == (
            "kdx query only reads, and this would do something else; nothing was changed\n"
            "  allowed: one SELECT, WITH … SELECT, VALUES or EXPLAIN"
        )
    several = refused("query", "SELECT 1; SELECT 2")
    assert (several.problem, several.allowed) == ("these are several statements", "one SELECT")
    assert refused("query").problem == "no statement is given"
    assert refused("query", "SELECT 1", "--csv", "--json").problem == "--json and --csv exclude each other"
    for other in ("SELECT 1", "--csv"):
        assert refused("query", "--schema", other).problem == "--schema stands alone, or with --json"
    assert refused("query", "SELECT 1", "--db", "absent.db").exit_code == 3
