"""What marks a file as a database of kdx is known without a database library."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from kdx.store.sqlite.header import APPLICATION_ID, application_of


def test_the_mark_in_the_header_reads_kdx1():
    assert APPLICATION_ID.to_bytes(4, "big") == b"kdx1"


def test_reading_it_imports_no_library():
    code = "import sys, kdx.store.sqlite.header; print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_header_of_a_file_names_its_application(empty, tmp_path):
    assert application_of(empty) == APPLICATION_ID
    other = tmp_path / "other.db"
    other.touch()
    assert application_of(other) is None
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE a (b)")
    assert application_of(other) == 0
    other.write_bytes(other.read_bytes()[:50])
    with pytest.raises(ValueError):
        application_of(other)
    with pytest.raises(FileNotFoundError):
        application_of(tmp_path / "absent.db")
