"""No name can drive the terminal, change the text around it, or be more than a name to a shell."""

import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.cli import completion, running
from kdx.cli.options import grid_options, in_database
from kdx.cli.planned import leaving
from kdx.cli.status_of_runs import _next
from kdx.sanitize import kdx_command, sanitize, sanitize_lines
from kdx.sweep.failing import Pause
from kdx.sweep.held_up import HeldUp

any_text = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Vaswani et al. (2017), Eq. 4", "Vaswani et al. (2017), Eq. 4"),
        ("日本語 → Ελληνικά", "日本語 → Ελληνικά"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("two\nlines\tand\u2028more", "two lines and more"),
        ("bell\a, null\0", "bell\\x07, null\\x00"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_names_come_out_as_one_plain_line(name: str, told: str) -> None:
    assert sanitize(name) == told


@given(any_text)
def test_nothing_active_is_left_of_any_text(name: str) -> None:
    told = sanitize(name)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in told)
    assert sanitize(told) == told


@given(st.text())
def test_no_text_can_drive_a_terminal(text):
    told = sanitize_lines(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in told if sign != "\n")
    assert told.count("\n") == text.count("\n")


def test_lines_and_their_indentation_stay(figure):
    told = sanitize_lines("a\n  b\x1b[2J\n")
    assert told == "a\n  b\\x1b[2J\n"
    figure(f"what clears a screen is told as {told[5:-1]}")


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

    def arguments(verb: str, *options: str) -> list[str]:
        options = (*options, "--db", name)
        return [verb, *options, "--", name] if name.startswith("-") else [verb, name, *options]

    where, empty = in_database(name), dict.fromkeys(("pending", "interrupted", "failed", "cancelled"), 0)
    yield _next(empty | {"pending": 1}, name, name).removeprefix("; next: "), arguments("resume")
    yield _next(empty | {"failed": 1}, name, name).removeprefix("; next: "), arguments("resume", "--failed")
    held_up = HeldUp({"c" * 32: Pause("why", 3)}, {}, {}).lines(name, where)[0]
    yield (
        held_up.removeprefix(f"cell cccccccc of {name} is paused: {Pause('why', 3)}; "),
        arguments("retry", "--failed"),
    )
    for counts, verb, *options in ({"failed": 1}, "resume", "--failed"), ({"completed": 1}, "report"):
        running._close(counts, {}, None, name, name, "")
        yield said.pop().rpartition(": ")[2] if ": " not in name else "", arguments(verb, *options)
    gone = SimpleNamespace(runs_gone=1, cells_that_lose_runs=(1,), renames_parts=False)
    query = f"""SELECT * FROM former_runs WHERE sweep = '{name.replace("'", "''")}'"""
    left = leaving(gone, SimpleNamespace(name=name), name)
    yield left.partition("nothing is deleted: ")[2].removesuffix(" shows it"), ["query", query, "--db", name]
    options = grid_options("0,1", [f"name={name}"])
    yield kdx_command("sweep", "./g", options=options), ["sweep", "./g", "--seeds", "0,1", "--set", f"name={name}"]
    if completion._offered([name], ""):
        yield f"kdx report {completion._quoted(name)}", ["report", name]


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(HOSTILE) | st.text(SIGNS, min_size=1, max_size=12))
def test_a_shell_hands_a_suggested_name_to_kdx_and_runs_nothing_else(tmp_path_factory, name):
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "say", said.append)
        patch.setenv("_KDX_COMPLETE", "complete_bash")
        lines, expected = zip(*((line, words) for line, words in suggested(name, said) if line), strict=True)
    shown = [sanitize_lines(line) for line in lines]
    assert shown == list(lines) and not any("\n" in line for line in lines)
    folder = tmp_path_factory.mktemp("shell")
    done = subprocess.run(["bash", "-c", RECORDS + "\n".join(shown)], cwd=folder, capture_output=True, check=False)
    assert not done.stderr and not list(folder.iterdir())
    got = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert got == [word for words in expected for word in (*words, "end")]


def test_nothing_else_quotes_for_a_shell():
    kdx = Path(completion.__file__).parents[1]
    users = {str(path.relative_to(kdx)) for path in kdx.rglob("*.py") if "import shlex" in path.read_text()}
    # Bash takes completions in single quotes; a job's script evaluates the command that runs Python, which the user may
    # have written.
    assert users == {"sanitize.py", "cli/completion.py", "slurm/job_command.py"}
