"""No grid that is wrong starts anything, leaves anything, or shows a traceback; and none is too much for kdx."""

import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase

import pytest
from grids import any_grid
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from lengths import count

from kdx import files
from kdx.cli.app import main
from kdx.errors import Faults
from kdx.grid import source
from kdx.grid.load import load_grid

WRONG = [
    "!!python/object/apply:os.system ['touch owned']",
    "kernel: !!python/name:os.system",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
    "<<: {kernel: rbf}",
    "name: one\nname: two",
    "[" * 5000,
    "{" * 60 + "}" * 60,
    "\t- x",
    "name: one\n---\nname: two",
    "%YAML 9.9\n---\nname: x",
    "name: \x00",
    "? {complex: key}\n: 1",
    "- just\n- a list",
    "just words",
    "",
    "# nothing",
    "kernel: rbf: rbf",
    '"unclosed',
    "axes: {kernel: [" + ", ".join(["rbf"] * 3) + "]}",
    "task: prediction\ndata: {corpus: synthetic-language}\naxes: {"
    + ", ".join(
        f"{name}: [{', '.join(map(str, range(1, 60)))}]"
        for name in ("training.steps", "training.warmup", "training.record_every", "model.inner", "data.seed")
    )
    + "}",
]


def test_every_wrong_grid_is_refused_and_leaves_nothing(seed, figure, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kdx.sweep.supervisor.Supervisor.run", lambda self: pytest.fail("it started"))
    file, told = tmp_path / "grid.yaml", []

    @seeded(seed)
    @settings(max_examples=count("GRIDS", 150), deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.sampled_from(WRONG) | any_grid())
    def tried(text: str) -> None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(Faults):
            load_grid(file)
            assert text not in WRONG
            return
        told.append(refused(capsys, "sweep", "grid.yaml"))
        assert not any(sign in told[-1] for sign in "\x1b\x00\x07")
        assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"], text

    tried()
    assert told
    figure(f"{len(told)} wrong grids, all refused with exit code 2, SEED={seed}")


SMALL = """
name: large
task: prediction
data: {corpus: synthetic-language}
model: {width: 16, heads: 2}
training: {steps: 10, batch_tokens: 256, length: 32}
"""
CELLS = f"axes: {{training.steps: {list(range(1, 101))}, training.warmup: {list(range(100))}}}\n"


def keys(count: int, value: str) -> str:
    return ", ".join(f"k{number}: {value}" for number in range(count))


# What it is → its text, and the beginning or end of its message.
TOO_MUCH = {
    "3,000 unknown keys": ("".join(f"k{number}: 1\n" for number in range(3_000)), "and 2,980 more"),
    "900 unknown keys of a section, 9,900 cells": (
        CELLS.replace("[1, ", "[") + f"evaluation: {{{keys(900, '1')}}}",
        "and 880 more",
    ),
    "1,000 axes of two choices": (f"axes: {{{keys(1_000, '{a: {}, b: {}}')}}}", "1,000 items as axes"),
    "100 tables of one place, 10,000 cells": (
        CELLS + "tables:\n" + "".join(f"- {{name: t{number}, rows: [kernel]}}\n" for number in range(100)),
        "10000 cells fall into one place",
    ),
    "5,000 levels": (f"x: {'[' * 5_000}", "nested too deep"),
    "2 MB": ("#" * 2_000_000, "at most 1000000 bytes"),
    "a value of 900,000 characters": (f"kernel: {'x' * 900_000}", "unknown kernel `xxx"),
    "an approach's name of 300 characters": (f"approaches: {{? {'x' * 300} : {{}}}}", "a key of 300 characters"),
    "a choice of 300 characters": (f"axes: {{placement: [[{'decoder-self, ' * 30}]]}}", "give it a name"),
    "extends of a device": ("extends: /dev/zero", "cannot extend"),
    "aliases that unfold to 2 to the 25": (
        "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise(ascii_lowercase)),
        "alias `*a`",
    ),
}  # fmt: skip


def refused(capsys, *command: str, codes: tuple[int, ...] = (2,)) -> str:
    """What a command says that starts nothing, in one short message."""
    with pytest.MonkeyPatch.context() as patched, contextlib.suppress(SystemExit):
        patched.setattr(sys, "argv", ["kdx", *command])
        try:
            main()
        except SystemExit as end:
            assert end.code in codes, (end.code, capsys.readouterr())
            raise
        pytest.fail("it was not refused")
    told = capsys.readouterr()
    assert told.err.strip() and not told.out and "Traceback" not in told.err
    assert len(told.err) < 50_000
    return told.err


@pytest.mark.parametrize("what", TOO_MUCH)
def test_no_grid_is_too_much(what, figure, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, expected = TOO_MUCH[what]
    head = SMALL
    for line in SMALL.strip().splitlines():
        key = line.partition(":")[0]
        if text.startswith((f"{key}:", f"{key}s:")):
            head = head.replace(f"{line}\n", "")
    Path("grid.yaml").write_text(head + text)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    told = refused(capsys, "sweep", "grid.yaml")
    seconds, peak = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert expected in told, told[:2000]
    assert (peak - before) < 300_000, "kB"
    figure(
        f"{what}: refused in {seconds:.2f} s, {len(told):,} characters, at most {(peak - before) / 1000:.0f} MB more"
    )


def test_a_grid_as_large_as_may_be_is_planned(figure, tmp_path):
    """10,000 cells in 100 tables, and a preset in each of 9,000 approaches, which is read once."""
    tables = "".join(f"- {{name: t{i}, rows: [training.steps], columns: [training.warmup]}}\n" for i in range(100))
    (tmp_path / "tables.yaml").write_text(f"{SMALL}{CELLS}tables:\n{tables}")
    presets = f"approaches: {{{keys(9000, '{preset: prediction-mini}')}}}"
    (tmp_path / "presets.yaml").write_text(SMALL + presets)
    read = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "read_file", lambda path, most: read.append(path) or files.read_file(path, most))
        for name in ("tables", "presets"):
            begun = time.monotonic()
            plan = load_grid(tmp_path / f"{name}.yaml")
            figure(f"{len(plan.cells):,} cells with 100 {name} planned in {time.monotonic() - begun:.1f} s")
    assert len(read) <= 3


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"g0.yaml": "extends: g1.yaml", "g1.yaml": "extends: g0.yaml"}, "g1.yaml:1:10: a grid that extends itself"),
        ({"g0.yaml": "extends: g0.yaml"}, "g0.yaml:1:10: a grid that extends itself"),
        ({"g0.yaml": "extends: ./x/../g0.yaml", "x/y": ""}, "g0.yaml:1:10: a grid that extends itself"),
        (
            {f"g{n}.yaml": f"extends: g{n + 1}.yaml\n# {'x' * 600_000}" for n in range(3)},
            "g1.yaml: 600019 bytes are no grid\n  allowed: at most 1000000 bytes, with all that it extends",
        ),
    ],
    ids=["a loop of two", "a loop of one", "a loop by another name", "1.2 MB together"],
)  # fmt: skip
def test_grids_that_extend_each_other_have_an_end(files, told, figure, tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    begun = time.monotonic()
    assert told in refused(capsys, "plan", "g0.yaml")
    figure(f"{request.node.callspec.id}: refused in {time.monotonic() - begun:.2f} s")


ADDRESSES = ["pipe", "/dev/zero", "/dev/null", "/dev/full", "folder", "socket", "/proc/self/mem",
             "x" * 300, "x/" * 2500, "line\nfeed", os.fsdecode(b"\xff\xfe"), "", "\x1b[2J"]  # fmt: skip
URLS = ["sqlite://", "sqlite:///", "sqlite://host/runs.db", "sqlite://host:port/runs.db", "sqlite://h:99999/runs.db",
        "sqlite:///%00", "sqlite:///:memory:", "sqlite:///runs.db?mode=%zz", "sqlite+odd:///runs.db", "sqlite:///pipe",
        "sqlite:////dev/zero", f"sqlite:///{'x' * 300}", "postgresql://[::1", "postgresql://[bad]/x",
        "postgresql://me:secret@host:port/x", "postgresql://me:secret@host:99999999/x", "http://[::1]:x/", "://",
        f"{'a' * 5000}://x"]  # fmt: skip
COMMANDS = {
    "a grid": (["plan", "--", "{}"], ADDRESSES, (2,)),
    "a database": (["report", "--db={}"], ADDRESSES + URLS, (2, 3)),
    "a database that is asked": (["query", "SELECT 1", "--db={}"], ADDRESSES + URLS, (2, 3)),
    "a database to be written": (
        ["sweep", "grid.yaml", "--db={}"],
        [one for one in [*ADDRESSES, *URLS] if one not in ("line\nfeed", os.fsdecode(b"\xff\xfe"), "\x1b[2J")],
        (2, 3),
    ),
    "a source of text": (["data", "prepare", "mine", "--from={}"], ADDRESSES, (2, 74)),
    "a paper": (["report", "--db=example.db", "--against={}"], [one for one in ADDRESSES if one], (2,)),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_no_address_is_waited_for_or_ends_in_a_traceback(what, figure, tmp_path, monkeypatch, capsys, data_home):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("grid.yaml").write_text(SMALL)
    Path("example.db").symlink_to(Path(__file__).parents[2] / "runs.db.example")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    there = sorted(path.name for path in tmp_path.iterdir())
    command, addresses, codes = COMMANDS[what]
    slowest = 0.0
    for address in addresses:
        begun = time.monotonic()
        told = refused(capsys, *(word.format(address) for word in command), codes=codes)
        slowest = max(slowest, time.monotonic() - begun)
        assert len(told) < 8000 and "secret" not in told and "\x1b" not in told
        assert sorted(path.name for path in tmp_path.iterdir()) == there, address
    figure(f"{what}: {len(addresses)} odd addresses refused, the slowest in {slowest:.2f} s")


def test_a_killed_backup_does_not_refuse_the_next(tmp_path, figure):
    """Killed when the copy is whole but has no name yet."""
    shutil.copy(Path(__file__).parents[2] / "runs.db.example", tmp_path / "runs.db")
    backup = [sys.executable, "-m", "kdx", "db", "backup", "monday.db"]
    dying = (
        "import os, signal, sys\n"
        "from kdx.store.sqlite import database\n"
        "database.give_name = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from kdx.cli.app import main\n"
        "sys.argv = ['kdx', 'db', 'backup', 'monday.db']\n"
        "main()\n"
    )
    killed = subprocess.run([sys.executable, "-c", dying], cwd=tmp_path)
    left = {path.name for path in tmp_path.iterdir()} - {"runs.db"}
    assert killed.returncode == -9 and len(left) == 1 and "monday.db" not in left
    for name in left:
        os.utime(tmp_path / name, (0, 0))
    again = subprocess.run(backup, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"runs.db", "monday.db"}
    figure(f"{len(left)} file left by SIGKILL, none after the next backup a day later, which has its name")
