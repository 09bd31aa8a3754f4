"""A data home of each test's own, and small corpora to fill it with."""

from pathlib import Path

import pytest

from kdx.data.prepare import prepare
from kdx.grid.sections import Data


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """Where data lies in this test."""
    monkeypatch.setenv("KDX_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def write(tmp_path):
    """Writes files, by path and contents, into a folder, and returns the folder."""

    def _write(files: dict[str, str | bytes], folder: str = "source") -> Path:
        for name, contents in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return tmp_path / folder

    return _write


PAIRS = {
    "train.de": "der hund\ndie katze schläft\nder hund schläft\n",
    "train.en": "the dog\nthe cat sleeps\nthe dog sleeps\n",
    "valid.de": "die katze\n",
    "valid.en": "the cat\n",
    "test.de": "der hund\ndie maus\n",
    "test.en": "the dog\nthe mouse\n",
}
PLAIN = {"train.txt": "a b a\n\nb c\n", "valid.txt": "a c\n", "test.txt": "c d\n"}


@pytest.fixture
def pairs(write) -> Path:
    """A folder of parallel text."""
    return write(PAIRS)


@pytest.fixture
def plain(write) -> Path:
    """A folder of plain text."""
    return write(PLAIN, "plain")


@pytest.fixture
def pets(pairs) -> Data:
    """A prepared parallel corpus."""
    prepare("pets", pairs)
    return Data(corpus="pets")


@pytest.fixture
def letters(plain) -> Data:
    """A prepared plain corpus."""
    prepare("letters", plain)
    return Data(corpus="letters")
