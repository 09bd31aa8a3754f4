"""kdx as a process: exit codes, pipes, and what the environment sets."""

import errno

import pytest
from typer.testing import CliRunner

from kdx import __main__ as entry
from kdx import __version__
from kdx.cli import app as module
from kdx.errors import TRY_AGAIN, DatabaseError, Faults, KdxError, Place, StorageError


@pytest.mark.parametrize(
    ("fault", "code", "expected"),
    [
        (KdxError("bad", hint="mend it"), 2, "error: bad\n  hint: mend it\n"),
        (Faults([KdxError("bad", place=Place("g.yaml", 1, 2))]), 2, "g.yaml:1:2: bad\n"),
        (Faults([KdxError("no grid `x`")]), 2, "error: no grid `x`\n"),
        (DatabaseError("absent", place="runs.db"), 3, "error: runs.db: absent\n"),
        (StorageError("the disk is full", place="runs.db"), 74, "error: runs.db: the disk is full\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "g.yaml"),
            3,
            "error: g.yaml: no permission: Permission denied\n"
            f"  hint: look at its owner and mode and those of its folder, {TRY_AGAIN}\n",
        ),
        (
            OSError(errno.EIO, "Input/output error", "<stdout>"),
            74,
            f"error: <stdout>: the disk failed: Input/output error\n  hint: check the disk, {TRY_AGAIN}\n",
        ),
    ],
)
def test_each_kind_of_problem_has_its_exit_code(monkeypatch, capsys, fault, code, expected):
    def fails():
        raise fault

    monkeypatch.setattr(module, "app", fails)
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == code
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize("fault", [KeyError("absent"), FileNotFoundError(errno.ENOENT, "No such file", "absent")])
def test_a_fault_of_kdx_keeps_its_traceback(monkeypatch, fault):
    def fails():
        raise fault

    monkeypatch.setattr(module, "app", fails)
    with pytest.raises(type(fault)):
        module.main()


def test_the_version_goes_to_stdout():
    expected = CliRunner().invoke(module.app, ["--version"])
    assert (expected.exit_code, expected.stdout) == (0, f"kdx {__version__}\n")


def test_a_reader_that_has_enough_is_no_error(terminal):
    """The closing line and its exit code come all the same, whether the pipe breaks early or at the very end."""
    for command in (
        "kdx plan quickstart --set seeds=300 | head -1",
        "kdx plan quickstart | true",
        "kdx data list | true",
    ):
        done = terminal.type(command)
        assert done.returncode == 0 and "Error" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert "next: kdx" in done.stderr
    done = terminal.type("kdx plan quickstart 2>&1 >/dev/null | true")
    assert done.returncode == 0


def test_a_locale_without_our_signs_ends_nothing(terminal):
    done = terminal.type("PYTHONIOENCODING=ascii kdx plan quickstart")
    assert done.returncode == 0 and "\\xd7 seeds 0\\u20132" in done.stdout


def test_on_another_system_one_message_says_on_which_it_runs(monkeypatch, capsys):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: kdx runs on Linux, not on darwin\n  hint: WSL or a container has one\n"
