"""What its examples answer, `tests/data/test_graphs.py` asks."""

from collections import Counter

from kdx.data.corpora.relation import Relation
from kdx.vocabulary import Split


def test_every_relation_comes_as_often():
    drawn = Relation().generate("relation", 0, Split.TEST, 400)
    found = Counter(drawn.slices["distance"].ravel().tolist())
    assert set(found) == {0, 1, 2, 3} and all(60 < times < 140 for times in found.values())
