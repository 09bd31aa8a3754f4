"""`kdx db copy` copies a database and says what it did, and what is not in the copy."""

import json
import subprocess
from pathlib import Path

import pytest
from looked_after import DB, completed, planned, refused, states, typed

from kdx.errors import DatabaseError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_copy_is_compared_and_says_where_files_belong():
    completed(planned(1)[0])
    done = typed("db", "copy", "runs.db", "my copy.db")
    assert (done.exit_code, done.stdout) == (0, "")
    first, *rest = done.stderr.splitlines()
    assert first.startswith("copied ") and first.endswith(" rows of 23 tables, and compared them: every row is equal")
    assert rest == [
        "checkpoints and weights were not copied; bring them with: cp -r runs.files/. 'my copy.files'",
        "read it with: kdx report --db 'my copy.db'",
    ]
    Path("my copy.db").replace(DB)
    assert states() == ["completed"]


def test_files_that_are_brought_by_hand_are_those_of_the_copy(folder):
    completed(planned(1)[0])
    typed("db", "copy", "runs.db", "copy.db")
    subprocess.run(["cp", "-r", "runs.files/.", "copy.files"], check=True)
    assert typed("doctor", "--db", "copy.db").stderr == "nothing is wrong\n"
    assert [row["bytes"] for row in json.loads(typed("gc", "--json", "--unknown", "--db", "copy.db").stdout)][-1] == 0


def test_a_copy_without_files_lacks_nothing(folder):
    completed(planned(1)[0])
    typed("db", "copy", "runs.db", "copy.db")
    assert typed("doctor", "--db", "copy.db").exit_code == 0


def test_json_has_the_rows_of_each_table():
    planned(2)
    done = json.loads(typed("db", "copy", "runs.db", "copy.db", "--json").stdout)
    assert (done["source"], done["target"], done["equal"]) == ("runs.db", "copy.db", True)
    assert (done["rows"]["run"], done["rows"]["cell"], done["rows"]["note"]) == (2, 1, 0)


def test_a_second_copy_overwrites_nothing():
    planned(1)
    typed("db", "copy", "runs.db", "copy.db")
    before = Path("copy.db").read_bytes()
    error = refused("db", "copy", "runs.db", "copy.db")
    assert isinstance(error, DatabaseError) and error.exit_code == 3
    assert str(error) == (
        "copy.db: there are results in it already, and nothing is overwritten\n"
        "  hint: name a database that is not there yet; kdx db merge joins two"
    )
    assert Path("copy.db").read_bytes() == before


def test_the_absent_and_the_foreign_are_refused():
    planned(1)
    assert refused("db", "copy", "absent.db", "copy.db").place == "absent.db"
    assert not Path("copy.db").exists()
    Path("other.txt").write_text("this is no database")
    assert refused("db", "copy", "runs.db", "other.txt").problem == "this file is not a database"
    assert Path("other.txt").read_text() == "this is no database"
    assert refused("db", "copy", "runs.db", "nowhere/copy.db").problem == "there is no folder nowhere"
