"""What a cut power leaves of a database: the transactions that were acknowledged, whole, and nothing of any other."""

import os
import signal
from pathlib import Path

import pytest
from lengths import count

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter

GRID = "name: one\ntask: prediction\ndata: {corpus: synthetic-language}\n"
SECTOR = 512  # bytes, which a disk writes whole or not at all
MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Of a header that counts [SQLite, Database File Format, 3]."""
ROWS = 3000


def record(path: Path, value: float) -> None:
    with open_database(path, write=True) as database:
        RunWriter(database, 1, "me", 1).record([("train/loss", step, value) for step in range(ROWS)], ROWS)


def values(path: Path) -> set[float]:
    """Of all rows; they must all be there."""
    with open_database(path, write=True) as database:
        with database.write() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        curve = reading.curve(database, 1, "train/loss")
    assert [step for step, _ in curve] == list(range(ROWS))
    return {value for _, value in curve}


@pytest.fixture
def broken(tmp_path):
    """A database before a transaction, and what its writer left that was killed in it: database and journal."""
    path = tmp_path / "runs.db"
    (tmp_path / "grid.yaml").write_text(GRID)
    plan = load_grid(tmp_path / "grid.yaml")
    with open_database(path, write=True, create=True) as database:
        recording.register(database, plan)
        assert claims.claim(database, 1, "me", 60.0) == 1
    record(path, 1.0)
    before = path.read_bytes()
    pid = os.fork()
    if pid == 0:
        try:
            with open_database(path, write=True) as database, database.write() as connection:
                # So little memory that half of the transaction is in the file before its end.
                connection.exec_driver_sql("PRAGMA cache_size = 10")
                connection.exec_driver_sql("UPDATE metric SET value = 2.0, bits = bits + 1, writes = 2")
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return path, before, path.read_bytes(), journal_of(path).read_bytes()


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def test_a_torn_journal_undoes_nothing_that_stands(broken, series, figure, tmp_path):
    """A header of the journal counts its pages once they are on the disk; only then are they overwritten in the file.

    So the journal may be torn behind the last header that counts, or anywhere while none does and the file is as before
    [SQLite, Atomic Commit, 3.7].
    """
    _, before, half, journal = broken
    headers = [at for at in range(0, len(journal), SECTOR) if journal[at:].startswith(MAGIC)]
    page = int.from_bytes(journal[24:28])
    counted = headers[-1] + SECTOR + int.from_bytes(journal[headers[-1] + 8 :][:4]) * (page + 8)
    assert half != before and len(headers) > 1 and SECTOR < counted < len(journal)
    images = count("JOURNALS", 60)
    for number in range(images):
        content, whole, from_ = series.choice([(before, bytes(12) + journal[12:], SECTOR), (half, journal, counted)])
        at = series.randrange(from_, len(journal))
        torn = {
            "cut": whole[:at],
            "zeros": whole[:at] + bytes(len(whole) - at),
            "garbage": whole[:at] + series.randbytes(len(whole) - at),
            "one sector": whole[:at] + series.randbytes(SECTOR) + whole[at + SECTOR :],
        }[series.choice(["cut", "zeros", "garbage", "one sector"])]
        path = tmp_path / f"{number}.db"
        path.write_bytes(content)
        journal_of(path).write_bytes(torn)
        assert values(path) == {1.0}
        path.unlink()
    figure(f"{images} torn journals: 0 acknowledged rows lost, 0 half transactions, integrity ok every time")
