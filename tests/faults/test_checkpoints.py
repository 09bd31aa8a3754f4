"""No damaged checkpoint is ever used, and no single damaged file costs more than one."""

import itertools
import os
import shutil
import signal
from pathlib import Path

from lengths import count
from victims import SPECS, Run

from kdx.store import reading
from kdx.store.database import open_database
from kdx.training.checkpoint import CheckpointFiles, name_of


def flip(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 16
    path.write_bytes(content)


def pipe(path) -> None:
    path.unlink()
    os.mkfifo(path)


def unreadable(path) -> None:
    """A link to what gives EIO at its beginning."""
    path.unlink()
    path.symlink_to("/proc/self/mem")


DAMAGES = {
    "removed": lambda path: path.unlink(),
    "flipped": flip,
    "empty": lambda path: path.write_bytes(b""),
    "a pipe": pipe,
    "a link": unreadable,
}


def dies_after_checkpoints(number: int) -> None:
    """Has this process kill itself once it has written so many."""
    save, calls = CheckpointFiles.save_checkpoint, itertools.count(1)

    def saved(*arguments, **words) -> None:
        save(*arguments, **words)
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    CheckpointFiles.save_checkpoint = saved


def test_one_damaged_file_of_a_killed_run_costs_checkpoints_and_no_bit(series, figure, tmp_path, data_home):
    """It never fails the run, holds it up, or changes a bit."""
    whole, run = Run(tmp_path / "whole", SPECS["averaged"]), Run(tmp_path / "killed", SPECS["averaged"])
    whole.to_the_end()
    # After two validations, so that a checkpoint lists two files of weights.
    os.waitpid(run.attempt(lambda: dies_after_checkpoints(14)), 0)
    names = sorted(path.name for path in run.files.glob("*.ckpt"))
    newest, before = (path.name for path in CheckpointFiles(run.files).newest_first("step"))
    steps = {name: name_of(Path(name)).step for name in (newest, before)}
    assert [name.partition("-")[0] for name in names] == ["step", "step", "weights", "weights"]
    shutil.copytree(run.folder, tmp_path / "image")
    attempts, lost = run.attempts, 0
    pairs = list(itertools.product(names, DAMAGES))
    # Each file once, each damage once; on request every file with every damage.
    few = list(zip(itertools.cycle(names), series.sample(sorted(DAMAGES), len(DAMAGES))))
    chosen = few if count("DAMAGES", len(few)) <= len(few) else pairs
    for name, damage in chosen:
        shutil.rmtree(run.folder)
        shutil.copytree(tmp_path / "image", run.folder)
        run.attempts = attempts
        DAMAGES[damage](run.files / name)
        run.to_the_end()
        with open_database(run.path, write=False) as database:
            (_, again) = reading.attempts(database, 1)
        expected = {newest: {steps[before]}, before: {steps[newest]}}.get(name, {0, steps[before]})
        assert again.resumed_step in expected, (name, damage)
        lost = max(lost, steps[newest] - again.resumed_step)
        assert run.left() == whole.left(), (name, damage)
    figure(
        f"{len(chosen)} times one of {len(names)} files damaged ({', '.join(sorted({one for _, one in chosen}))}): "
        f"{lost} of {steps[newest]} steps lost at most, {len(chosen)} of {len(chosen)} identical"
    )
