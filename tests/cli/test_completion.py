"""Shells complete names, fast, and no name of a database reaches a shell as more than a name."""

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looked_after import DB, planned
from terminal import KDX
from waiting import GIVE_UP

from kdx.cli import completion
from kdx.store.database import open_database


@pytest.fixture
def folder(tmp_path):
    planned(2)
    return tmp_path


def completed(folder: Path, *words: str, shell: str = "bash", **more: str) -> list[str]:
    """What the protocol of a shell gives for the last of these words; bash takes words apart as in its manual."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KDX_", "COMP"))}
    environment |= {"_KDX_COMPLETE": f"complete_{shell}", **more}
    if shell == "bash":
        environment |= {"COMP_WORDS": "\n".join(("kdx", *words)), "COMP_CWORD": str(len(words))}
    else:
        environment["_TYPER_COMPLETE_ARGS"] = " ".join(("kdx", *words))
        environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    done = subprocess.run([KDX], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return list(filter(None, done.stdout.splitlines()))


def renamed(name: str) -> None:
    """Nothing is there to be offered but a sweep of this name."""
    Path("grid.yaml").unlink()
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = ?", (name,))


@pytest.mark.slow
def test_each_command_completes_what_it_takes(folder):
    cell = (
        subprocess.run([KDX, "query", "SELECT cell_id FROM cells", "--csv"], cwd=folder, capture_output=True, text=True)
        .stdout.splitlines()[1]
        .strip('"')
    )
    assert completed(folder, "sta") == ["status"]
    assert completed(folder, "status", "ti") == ["tiny"]
    assert completed(folder, "status", "tiny", "state") == [f"state={state}" for state in STATES]
    assert completed(folder, "show", "") == ["tiny", "grid.yaml"]
    assert completed(folder, "show", cell[:3]) == [cell[:8]]
    # The id of a cell may begin so as well.
    assert "2" in completed(folder, "diff", "1", "2") and completed(folder, "logs", "") == ["2", "1"]
    assert completed(folder, "sweep", "quick") == ["quickstart"] and completed(folder, "plan", "gr") == ["grid.yaml"]
    assert completed(folder, "report", "--table", "") == completed(folder, "trace", "") == ["tiny"]
    assert completed(folder, "trace", "tiny", "x", "--sweep", "") == ["tiny", "grid.yaml"]
    assert completed(folder, "note", "t") == ["tiny"]
    assert completed(folder, "rm", "") == completed(folder, "cancel", "")
    assert completed(folder, "cancel", "")[0] == "tiny" and completed(folder, "retry", "2") == ["2"]
    assert completed(folder, "invalidate", "") == ["2", "1"]
    assert "synthetic-order" in completed(folder, "data", "info", "synthetic")
    assert completed(folder, "explain", "training.ste") == ["training.steps"]
    assert completed(folder, "explain", "lapl") == ["laplacian"]
    assert "training.steps=" in completed(folder, "plan", "quickstart", "--set", "training.s")


STATES = ("pending", "running", "interrupted", "failed", "cancelled", "completed", "diverged", "pruned")


def test_other_shells_get_whole_words(folder):
    assert completed(folder, "status", "tiny", "state=comp", shell="fish") == ["state=completed"]
    assert '"tiny"' in "".join(completed(folder, "status", "ti", shell="zsh"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["$(touch owned)", "x; touch owned", "a'b", "*", "~", "--db=x", "-x", "a\x1b[2Jb", "one\ntwo"]
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_name_that_a_shell_could_take_for_more_or_for_an_option_is_never_offered(folder, name, shell):
    renamed(name)
    assert not [line for line in completed(folder, "status", "", shell=shell) if name in line]


@given(st.text(min_size=1))
def test_a_shell_reads_every_offered_name_back_as_it_is(name):
    for word in completion._offered([name], ""):
        assert shlex.split(word) == [name] and not word.startswith("-")


def test_without_a_database_or_with_a_foreign_one_there_are_no_names(tmp_path):
    assert completed(tmp_path, "status", "") == []
    (tmp_path / "runs.db").write_bytes(b"no database")
    assert completed(tmp_path, "status", "") == completed(tmp_path, "show", "ab") == []
    assert completed(tmp_path, "status", "", KDX_DB="postgresql://nowhere/x") == []


def test_in_a_real_bash_a_name_is_completed(folder):
    pid, screen = pty.fork()
    if pid == 0:
        os.environ.update(PATH=f"{KDX.parent}:{os.environ['PATH']}", PS1="$ ", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])

    def typed(text: str, until: str) -> str:
        os.write(screen, text.encode())
        seen, deadline = "", time.monotonic() + GIVE_UP
        while until not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([screen], [], [], 1)[0]:
                seen += os.read(screen, 4096).decode()
        return seen

    typed("source <(kdx --show-completion bash); echo re''ady\n", "ready")
    typed("kdx status ti\t", "tiny ")
    os.write(screen, b"\x15exit\n")
    os.waitpid(pid, 0)
    os.close(screen)


def test_completion_loads_neither_torch_nor_what_only_some_commands_need(folder):
    script = (
        "import os, sys\n"
        "from kdx.cli.app import main\n"
        "sys.argv = ['kdx']\n"
        "for line in ('status t', 'show ', 'plan x --set ker', 'explain r', 'trace '):\n"
        "    words = line.split(' ')\n"
        "    os.environ |= {'COMP_CWORD': str(len(words)), 'COMP_WORDS': '\\n'.join(['kdx', *words])}\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "heavy = {'torch', 'pytorch_lightning', 'optuna', 'alembic', 'scipy'} & set(sys.modules)\n"
        "print('loaded:', *sorted(heavy))"
    )
    environment = os.environ | {"_KDX_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert {"tiny", "grid.yaml", "relative"} <= set(done.stdout.split()), "all of them gave names"
    assert done.stdout.splitlines()[-1] == "loaded:"
