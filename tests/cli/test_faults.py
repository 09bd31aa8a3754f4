"""What befalls the database while a sweep is at work, in real processes."""

import json
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from grids import LONG
from terminal import Terminal
from waiting import has_begun, wait_until

from kdx.errors import FREE_SPACE
from kdx.store.database import BUSY_SECONDS
from kdx.store.records import RunState

STOPPABLE = LONG.replace("steps: 800", "steps: 240").replace(
    "validate_every: 800", "validate_every: 80, record_every: 1"
)


def rows(path: Path) -> list[tuple[object, ...]]:
    """Every number that was recorded, as bits."""
    with closing(sqlite3.connect(path)) as connection:
        numbers = "SELECT cell_id, seed, name, step, bits FROM metric JOIN run ON run.id = run_id ORDER BY 1, 2, 3, 4"
        return connection.execute(numbers).fetchall()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> list[tuple[object, ...]]:
    """The numbers of the sweep that nothing befell."""
    home = tmp_path_factory.getbasetemp() / "data-home"
    terminal = Terminal(tmp_path_factory.mktemp("undisturbed"), home)
    terminal.write("long.yaml", STOPPABLE)
    assert terminal.type("kdx sweep long.yaml -w 2").returncode == 0
    return rows(terminal.folder / "runs.db")


@pytest.mark.slow
def test_a_sweep_whose_database_is_taken_away_ends_and_makes_no_other(terminal, figure):
    terminal.write("long.yaml", STOPPABLE.replace("steps: 240", "steps: 100000"))
    sweep = terminal.start("sweep", "long.yaml", "-w", "2")
    wait_until(lambda: terminal.is_at_work())
    (terminal.folder / "runs.db").unlink()
    sweep.wait(300)
    assert sweep.returncode == 3
    assert terminal.messages().endswith(
        "error: runs.db: the database was deleted or replaced while it was open\n"
        "  hint: nothing was written to what is there now; put the right file back, then kdx resume\n"
    )
    wait_until(lambda: not terminal.workers())
    made = list(terminal.folder.glob("runs.db"))
    assert not made
    figure(f"exit {sweep.returncode}, {len(terminal.workers())} workers left, {len(made)} other databases made")


@pytest.mark.slow
def test_on_a_full_disk_a_sweep_stops_and_goes_on_when_there_is_room(terminal, undisturbed, figure):
    disk = terminal.folder / "disk"
    disk.mkdir()
    small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=340k", "tmpfs", str(disk)], capture_output=True)
    if small.returncode:
        pytest.skip(f"no permission to mount a small disk: {small.stderr.decode().strip()}")
    try:
        terminal.write("long.yaml", STOPPABLE)
        stopped = terminal.type("kdx sweep long.yaml -w 2 --db disk/runs.db")
        assert stopped.returncode == 74, stopped.stderr
        assert stopped.stderr.endswith(f"hint: {FREE_SPACE}\n")
        wait_until(lambda: not terminal.workers())
        before = rows(disk / "runs.db")  # none where the machine is so fast that none was to be written yet
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        resumed = terminal.type("kdx resume -w 2 --db disk/runs.db")
        assert resumed.returncode == 0, resumed.stderr
        assert set(before) <= set(rows(disk / "runs.db")) == set(undisturbed)
        assert {run.state for run in terminal.runs("disk/runs.db")} == {RunState.COMPLETED}
        figure(f"exit {stopped.returncode} with {len(before)} rows, all there after it went on, identical")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.long
def test_a_database_that_is_locked_longer_than_opening_waits_costs_a_sweep_nothing(terminal, undisturbed, figure):
    terminal.write("long.yaml", STOPPABLE)
    sweep = terminal.start("sweep", "long.yaml", "-w", "2")
    wait_until(lambda: has_begun(terminal.folder / "runs.files"))
    path, seconds = terminal.folder / "runs.db", BUSY_SECONDS + 4
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("COMMIT")
    assert sweep.wait(300) == 0, terminal.messages()
    assert {run.attempt for run in terminal.runs()} == {1}
    found = rows(path)
    assert found == undisturbed
    lost = len({*undisturbed} - {*found})
    figure(f"locked for {seconds:.0f} s: exit {sweep.returncode}, {lost} of {len(undisturbed)} rows lost, identical")


@pytest.mark.slow
def test_doctor_and_backup_at_work_beside_a_sweep(terminal, undisturbed):
    """Two that look, and one that copies, while two runs write."""
    terminal.write("long.yaml", STOPPABLE)
    sweep = terminal.start("sweep", "long.yaml", "-w", "2")
    wait_until(lambda: terminal.has_rows())
    turns = 0
    while sweep.poll() is None or not turns:
        turns += 1
        looked = terminal.type(f"kdx doctor --fix --json && kdx gc --apply && kdx db backup copy-{turns}.db")
        assert looked.returncode == 0, looked.stdout + looked.stderr
        assert json.loads(looked.stdout.partition("\n}\n")[0] + "}")["findings"] == []
        copied = rows(terminal.folder / f"copy-{turns}.db")
        assert copied and set(copied) <= set(undisturbed)
    assert sweep.returncode == 0, terminal.messages()
    assert rows(terminal.folder / "runs.db") == undisturbed
