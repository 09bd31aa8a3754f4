"""A name in a suggested command is one argument to a shell, whatever its characters."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.cli import completion, console, running
from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.options import set_options
from kdx.cli.planned import removed_runs
from kdx.cli.progress import Lines
from kdx.cli.suggest import resume, retry
from kdx.sanitize import sanitize
from kdx.shell import kdx_command
from kdx.store.records import RunState
from kdx.sweep.blocked import Blocked, Pause

HOSTILE = (
    "$(touch RAN)",
    "`touch RAN`",
    "'; touch RAN; '",
    '"; touch RAN; "',
    "-rf",
    "--help",
    "a\nb; touch RAN",
    "!!",
)
SIGNS = "ab -'\"\\$`();&|<>*?[]{}!#~=%\n\té\u00a0\u2028\u202e\x1b\udcff"
RECORDS = "kdx() { printf '%s\\0' \"$@\" end; }\n"


def suggested(name: str, said: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What commands suggest for a sweep, a database and a file of this name, and the arguments that kdx shall get."""

    def arguments(verb: str, *conditions: str) -> list[str]:
        options = ["--db", name]
        return [verb, *options, "--", name, *conditions] if name[0] == "-" else [verb, name, *conditions, *options]

    context = Context(name)
    where = context.options
    yield resume(name, where), arguments("resume")
    yield retry(RunState.FAILED, name, where), arguments("retry", "state=failed")
    blocked = Blocked({"c" * 32: Pause("why", 3)}, {}).lines(name, where)[0]
    yield (
        blocked.removeprefix(f"cell cccccccc of {sanitize(name)} is paused: {Pause('why', 3)}; "),
        arguments("retry", "state=failed"),
    )
    for counts, verb, *options in ({"failed": 1}, "retry", "state=failed"), ({"completed": 1}, "report"):
        listener = Lines(None)
        listener.counts = counts
        running._close(listener, name, context, where)
        yield said.pop().rpartition(": ")[2], arguments(verb, *options)
    gone = SimpleNamespace(runs_gone=1, cells_that_lose_runs=(1,))
    query = f"""SELECT * FROM former_runs WHERE sweep = '{name.replace("'", "''")}'"""
    left = removed_runs(gone, SimpleNamespace(name=name), context)
    yield left.partition("list it with: ")[2], ["query", query, "--db", name]
    options = set_options(["seeds=5", f"name={name}"])
    yield kdx_command("sweep", "./g", options=options), ["sweep", "./g", "--set", "seeds=5", "--set", f"name={name}"]


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(HOSTILE) | st.text(SIGNS, min_size=1, max_size=12), columns=st.none() | st.integers(20, 60))
def test_a_shell_hands_a_suggested_name_to_kdx_and_runs_nothing_else(tmp_path_factory, name, columns):
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "say", said.append)
        lines, expected = zip(*((line, words) for line, words in suggested(name, said) if line), strict=True)
        patch.setattr(sys, "stderr", shown := io.StringIO())
        patch.setattr(console, "width", lambda stream: columns)
        for line in lines:
            say(line)
        if completion._offered([name], ""):
            shown.write(f"kdx report {name}")
            expected += (["report", name],)
    folder = tmp_path_factory.mktemp("shell")
    done = subprocess.run(["bash", "-c", RECORDS + shown.getvalue()], cwd=folder, capture_output=True, check=False)
    assert not done.stderr and not list(folder.iterdir())
    got = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert got == [word for words in expected for word in (*words, "end")]


def test_nothing_else_quotes_for_a_shell():
    kdx = Path(completion.__file__).parents[1]
    users = {str(path.relative_to(kdx)) for path in kdx.rglob("*.py") if "import shlex" in path.read_text()}
    # A job's script evaluates the command that runs Python, which the user may have written; and the command in a file
    # is read back.
    assert users == {"shell.py", "slurm/submission.py", "report/made_by.py", "report/check/quoted.py"}
