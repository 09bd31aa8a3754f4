import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kdx.cli.data import app
from kdx.data import BUILT_IN
from kdx.data.prepare import read_about
from kdx.errors import KdxError


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where data lies in this test."""
    monkeypatch.setenv("KDX_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def text(tmp_path):
    """A folder of plain text."""
    folder = tmp_path / "[bold]text"
    folder.mkdir()
    for name in ("train", "valid", "test"):
        (folder / f"{name}.txt").write_text("a b\nc\n")
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_prepare_prints_where_the_text_lies(home, text):
    result = run("prepare", "mine", "--from", str(text))
    assert result.stdout == f"{home}/corpora/mine\n"
    assert result.stderr == (
        f"reading {text} …\n"
        "mine is prepared, lines: train.txt 2, valid.txt 2, test.txt 2; next, in a grid: data: {corpus: mine}\n"
    )
    assert read_about(home / "corpora" / "mine")


def test_prepare_refuses_what_is_not_there(home, tmp_path):
    with pytest.raises(KdxError, match="no such folder or archive"):
        run("prepare", "mine", "--from", str(tmp_path / "absent"))


def test_prepare_needs_a_source(home):
    assert run("prepare", "mine").exit_code == 2


def test_list_names_every_corpus(home, text):
    run("prepare", "mine", "--from", str(text))
    lines = run("list").stdout.splitlines()
    rows = {line.split()[0]: " ".join(line.split()) for line in lines}
    assert rows["synthetic-translation"] == "synthetic-translation generated source → target 4,000 made by kdx"
    assert rows["synthetic-images"] == "synthetic-images generated examples 6,000 made by kdx"
    assert rows["multi30k"].startswith("multi30k not prepared de → en 29,000 none stated by its authors")
    assert rows["mine"].startswith("mine prepared plain 2 not known")


def test_list_as_json(home, text):
    run("prepare", "mine", "--from", str(text))
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert list(rows) == [*BUILT_IN, "mine"]
    assert rows["synthetic-tours"]["suffixes"] == []
    assert rows["mine"]["where"] == f"{home}/corpora/mine"
    assert rows["mine"]["files"]["train.txt"]["words"] == 3
    assert rows["wikitext2"]["state"] == "not prepared"
    assert rows["wikitext2"]["where"] is None


@pytest.mark.parametrize("command", ["prepare", "list"])
def test_help_has_an_example(command):
    assert f"Example: kdx data {command}" in run(command, "--help").stdout


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from kdx.cli.data import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: print({'numpy', 'torch', 'pydantic', 'tokenizers'} & set(sys.modules), file=sys.stderr)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr == "set()\n"
