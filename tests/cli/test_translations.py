"""Translations of selected runs, beside the references of the corpora that are here."""

from kdx.cli.translations import translations_of
from kdx.data.find_text import find_text
from kdx.grid.sections import Data
from kdx.store.records import SweepRecord


def test_references_are_the_last_side_of_the_test_split_read_once(data_home, monkeypatch):
    read = []
    monkeypatch.setattr("kdx.cli.translations.find_text", lambda *of: read.append(of) or find_text(*of))
    data = Data(corpus="synthetic-translation", train_lines=20)
    given = translations_of(SweepRecord(1, "t", 0.0, {}, (), ()), {7: ["a b"]})
    lines = given.references(data)
    assert lines and all(line == " ".join(line.split()) for line in lines)
    assert given.references(data) is lines and read == [(data,)]
    assert given.lines == {7: ["a b"]}
