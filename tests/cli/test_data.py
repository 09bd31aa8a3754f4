import contextlib
import hashlib
import json
import os
import pty
import subprocess
import sys

import pytest
from looked_after import typed

from kdx.data.prepared import read_about
from kdx.errors import KdxError
from kdx.tasks.corpora import BUILT_IN


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


def test_prepare_prints_where_the_text_lies(home, text):
    result = typed("data", "prepare", "mine", "--from", str(text))
    assert result.stdout == f"{home}/corpora/mine\n"
    assert result.stderr == (
        f"reading {text} …\n"
        "mine is prepared, lines: train.txt 2, valid.txt 2, test.txt 2; next, in a grid: data: {corpus: mine}\n"
    )
    assert read_about(home / "corpora" / "mine")


def test_a_text_of_ones_own_needs_a_source(home):
    with pytest.raises(
        KdxError, match=r"kdx does not know a corpus `mine`\n  hint: of your own: kdx data prepare mine"
    ):
        typed("data", "prepare", "mine")


def test_prepare_shows_the_notes(home, tmp_path):
    folder = tmp_path / "wmt"
    folder.mkdir()
    for name in ("train", "newstest2013", "newstest2014"):
        for language in ("en", "de"):
            (folder / f"{name}.{language}").write_text("a b\n")
    result = typed("data", "prepare", "wmt14-en-de", "--from", str(folder))
    assert result.stdout == f"{home}/corpora/wmt14-en-de\n"
    assert "note: valid.en: 1 lines instead of 3,000\n" in result.stderr
    assert result.stderr.endswith("next, in a grid: data: {corpus: wmt14-en-de}\n")


def test_text_of_ones_own_may_be_tokenised(home, text):
    typed("data", "prepare", "mine", "--from", str(text), "--tokenised")
    assert json.loads(typed("data", "info", "mine", "--json").stdout)["tokenised"]


def test_progress_is_shown_on_a_terminal_only(home, tmp_path):
    folder = tmp_path / "long"
    folder.mkdir()
    for name in ("train", "valid", "test"):
        (folder / f"{name}.txt").write_text("a b\n" * 100_000)
    here, there = pty.openpty()
    command = [sys.executable, "-m", "kdx", "data", "prepare", "long", "--from", str(folder)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=there, env={**os.environ, "TERM": "xterm"}, check=True
    )
    os.close(there)
    seen = b""
    with contextlib.suppress(OSError):
        while piece := os.read(here, 65536):
            seen += piece
    os.close(here)
    assert b"copying train.txt" in seen and b"100%" in seen
    assert done.stdout.decode() == f"{home}/corpora/long\n"
    done = subprocess.run([*command[:5], "again", *command[6:]], capture_output=True, check=True)
    assert b"copying" not in done.stderr


def test_list_names_every_corpus(home, text):
    typed("data", "prepare", "mine", "--from", str(text))
    lines = typed("data", "list").stdout.splitlines()
    rows = {line.split()[0]: " ".join(line.split()) for line in lines}
    assert rows["synthetic-translation"] == "synthetic-translation generated source → target 4,000 made by kdx"
    assert rows["synthetic-images"] == "synthetic-images generated examples 6,000 made by kdx"
    assert rows["multi30k"].startswith("multi30k not prepared de → en 29,000 none stated by its authors")
    assert rows["mine"].startswith("mine prepared plain 2 not known")


def test_list_as_json(home, text):
    typed("data", "prepare", "mine", "--from", str(text))
    rows = {row["name"]: row for row in json.loads(typed("data", "list", "--json").stdout)}
    assert list(rows) == [*BUILT_IN, "mine"]
    assert rows["synthetic-tours"]["suffixes"] == []
    assert rows["mine"]["where"] == f"{home}/corpora/mine"
    assert rows["mine"]["files"]["train.txt"]["words"] == 3
    assert rows["wikitext2"]["state"] == "not prepared"
    assert rows["wikitext2"]["where"] is None


def test_info_tells_of_a_prepared_corpus(home, text):
    typed("data", "prepare", "mine", "--from", str(text))
    shown = typed("data", "info", "mine").stdout
    for fact in ("prepared", "plain", "not known", f"{home}/corpora/mine", str(text)):
        assert fact in shown
    sha256 = hashlib.sha256(b"a b\nc\n").hexdigest()
    assert ["train.txt", "2", "3", sha256] in [line.split() for line in shown.splitlines()]
    row = json.loads(typed("data", "info", "mine", "--json").stdout)
    assert row["files"]["train.txt"] == {"lines": 2, "words": 3, "sha256": sha256, "empty": 0}
    assert row["notes"] == []


def test_info_tells_how_to_come_by_a_known_corpus(home):
    result = typed("data", "info", "iwslt14")
    assert "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz" in result.stdout
    assert "CC BY-NC-ND" in result.stdout
    assert result.stderr == "next: kdx data prepare iwslt14\n"
    result = typed("data", "info", "wmt14-en-de")
    assert "https://www.statmt.org/wmt14/" in result.stdout and "about 4,500,000" in result.stdout
    assert result.stderr == "next: kdx data prepare wmt14-en-de --from PATH\n"


def test_info_tells_of_generated_text(home):
    assert "made by kdx" in typed("data", "info", "synthetic-language").stdout


def test_info_refuses_what_is_not_there(home):
    with pytest.raises(KdxError, match=r"unknown corpus `wikitext`\n  hint: did you mean `wikitext"):
        typed("data", "info", "wikitext")
