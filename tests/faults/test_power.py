"""The power is cut: of what was not forced to disk anything may be gone, and all that was acknowledged is there."""

import copy
import os
import shutil
import time

from disk import Call, Disk, Traced, require_strace, traced
from lengths import count
from victims import SPECS, Run

from kdx.store.recording import RunWriter
from kdx.store.records import FINAL
from kdx.training.checkpoint import CheckpointFiles

ACKNOWLEDGED, CHECKPOINT = "acknowledged", "checkpoint"
ONE_IN = 20
"""Images from which the run goes on to its end."""


def acknowledging(run: Run) -> None:
    """Has a worker note, after each transaction, what it was told is safe, and after each checkpoint its step."""
    while not traced(os.getpid()):
        time.sleep(0.01)
    note = os.open(run.folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT)
    record, together, save = RunWriter.record, RunWriter.together, CheckpointFiles.save_checkpoint
    given: list[tuple[str, int, float]] = []

    def recorded(writer: RunWriter, rows, step: int) -> None:
        given.extend(rows)
        record(writer, rows, step)

    def committed(writer: RunWriter, writes) -> None:
        together(writer, writes)
        os.write(note, "".join(f"{name} {at}\n" for name, at, _ in given).encode() or b"\n")
        given.clear()

    def saved(files: CheckpointFiles, checkpoint, path, **how) -> None:
        save(files, checkpoint, path, **how)
        os.write(note, f"{CHECKPOINT} {checkpoint['global_step']}\n".encode())

    RunWriter.record, RunWriter.together, CheckpointFiles.save_checkpoint = recorded, committed, saved


def acknowledged_in(call: Call) -> set[tuple[str, int]]:
    lines = [line.rpartition(" ") for line in call.data.decode().splitlines() if line]
    return {(name, int(step)) for name, _, step in lines}


def test_a_run_goes_on_from_whatever_a_cut_of_the_power_leaves(series, figure, tmp_path, data_home):
    require_strace()
    run = Run(tmp_path / "run", SPECS["averaged"])
    pid = run.attempt(lambda: acknowledging(run))
    disk, trace = Disk(run.folder), Traced(pid, tmp_path / "strace.txt")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    calls, whole = trace.calls(run.folder), run.left()

    cuts, gone_on, asked = count("CUTS", 40), 0, 0
    acknowledged: set[tuple[str, int]] = set()
    for number, moment in enumerate(sorted(series.randrange(len(calls)) for _ in range(cuts))):
        for call in calls[asked:moment]:
            if call.path.name != ACKNOWLEDGED:
                disk.ask(call)
            elif call.name == "write":
                acknowledged |= acknowledged_in(call)
        asked = moment
        image = copy.copy(run)
        image.folder = tmp_path / f"image-{number}"
        disk.leave(image.folder, series.choice([0.0, 0.5, 0.9, 1.0]), series)
        rows, saved = image.rows(), [step for name, step in acknowledged if name == CHECKPOINT]
        assert rows.items() <= whole.rows.items(), "a row that the run never had"
        assert {row for row in acknowledged if row[0] != CHECKPOINT} <= rows.keys(), "an acknowledged row was lost"
        if saved and image.record().state not in FINAL:
            files = CheckpointFiles(image.files)
            newest = files.newest_first("step")[0]
            assert int(newest.name[5:14]) >= max(saved) and files.read(newest) is not None
        if number % ONE_IN == 0:
            image.to_the_end()
            assert image.left() == whole
            gone_on += 1
        shutil.rmtree(image.folder)
    assert len(acknowledged) > 30
    figure(
        f"{cuts} cuts among {len(calls)} calls: 0 of {len(acknowledged)} acknowledged rows and checkpoints lost, "
        f"{gone_on} of {gone_on} runs identical"
    )
