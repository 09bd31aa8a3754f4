"""References of translations, from the corpora that are here."""

from kdx.cli.report import _references
from kdx.data.find_text import find_text
from kdx.grid.sections import Data


def test_references_are_the_last_side_of_the_test_split_read_once(data_home, monkeypatch):
    read = []
    monkeypatch.setattr("kdx.data.find_text.find_text", lambda *of: read.append(of) or find_text(*of))
    data = Data(corpus="synthetic-translation", train_lines=20)
    lines = _references(data)
    assert lines and all(line == " ".join(line.split()) for line in lines)
    assert _references(data) is lines and read == [(data,)]
