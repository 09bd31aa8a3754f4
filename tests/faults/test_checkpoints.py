"""No damaged checkpoint is ever used."""

import os

from conftest import count
from victims import SPECS, Run, killed

from kdx.training.checkpoint import CheckpointFiles


def test_every_flipped_bit_in_a_checkpoint_is_caught(series, figure, tmp_path, data_home):
    run = Run(tmp_path / "run", SPECS["prediction"])
    pid = run.attempt()
    folder = run.files
    while not list(folder.glob("step-*.ckpt")):
        assert not os.waitpid(pid, os.WNOHANG)[0]
    killed(pid, 0)
    files = CheckpointFiles(folder)
    path = files.newest_first("step")[0]
    content, flips, caught = path.read_bytes(), count("FLIPS", 300), 0
    for _ in range(flips):
        damaged = bytearray(content)
        damaged[series.randrange(len(damaged))] ^= 1 << series.randrange(8)
        path.write_bytes(damaged)
        caught += files.read(path) is None
        path.with_suffix(".corrupt").unlink()
    path.write_bytes(content)
    assert files.read(path) is not None
    figure(f"{flips} flips, {caught} caught")
    assert caught == flips
