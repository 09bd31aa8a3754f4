"""What was read from a source is kept for the next process, and is never that of another source."""

import ast
import json

import pytest

from kdx import sources
from kdx.sources import keep_readings, read_source, source_of

MODULE, READER = "kdx.durations", "kdx.outline"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user with an empty home, whose processes keep nothing elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sources, "_keep_at_exit", lambda: None)
    next_process()
    yield tmp_path
    next_process()


def next_process() -> None:
    for cached in (sources._readings, sources._content, sources._tree):
        cached.cache_clear()


def file(home):
    (found,) = (home / ".cache" / "kdx").glob("sources-*.json")
    return found


class Reader:
    """Finds the names of functions, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, tree: ast.Module) -> list[str]:
        self.asked += 1
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]

    @property
    def found(self) -> list[str]:
        return read_source(MODULE, READER, self)


def test_the_next_process_has_what_was_read(home):
    read = Reader()
    assert read.found == read.found == ["in_words"]
    keep_readings()
    next_process()
    assert read.found == ["in_words"]
    assert read.asked == 1


@pytest.mark.parametrize("other", [MODULE, READER, "kdx.sources"])
def test_a_change_of_any_source_that_decides_is_noticed(home, monkeypatch, tmp_path, other):
    read = Reader()
    assert read.found
    keep_readings()
    next_process()
    changed = tmp_path / "changed.py"
    changed.write_text(source_of(other).read_text() + "\ndef more(): pass\n")
    find = sources.source_of
    monkeypatch.setattr(sources, "source_of", lambda module: changed if module == other else find(module))
    assert ("more" in read.found) is (other == MODULE)
    assert read.asked == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-20],
        lambda text: text.replace("in_words", "in_deeds"),
        lambda text: "",
        lambda text: "\n",
        lambda text: json.dumps([]),
        lambda text: "\0" * len(text),
    ],
)
def test_what_somebody_put_there_is_read_anew(home, spoil):
    read = Reader()
    assert read.found
    keep_readings()
    whole = file(home).read_text()
    file(home).write_text(spoil(whole))
    next_process()
    assert read.found == ["in_words"]
    assert read.asked == 2
    keep_readings()
    assert file(home).read_text() == whole


def test_a_file_of_other_bytes_is_read_anew(home):
    read = Reader()
    assert read.found
    keep_readings()
    file(home).write_bytes(b"\xff\n\xff")
    next_process()
    assert read.found == ["in_words"]


def test_where_nothing_can_be_kept_all_is_read(home, monkeypatch):
    (home / ".cache").write_text("a file")
    assert Reader().found == ["in_words"]
    keep_readings()
    monkeypatch.setenv("HOME", str(home / "gone"))
    next_process()
    assert Reader().found == ["in_words"]
    keep_readings()
    assert [path.name for path in home.iterdir()] == [".cache"]


def test_a_module_is_found_without_importing_it():
    assert source_of("kdx.attention.kernels.rbf").name == "rbf.py"
    assert source_of("kdx.attention").name == "__init__.py"
    assert source_of("kdx.attention.kernels.cauchy") is None
