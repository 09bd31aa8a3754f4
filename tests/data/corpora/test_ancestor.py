"""What its examples answer, `tests/data/test_graphs.py` asks."""

from collections import Counter

from kdx.data.corpora.ancestor import Ancestor
from kdx.vocabulary import Split


def test_half_of_the_nodes_are_ancestors_and_every_distance_comes():
    drawn = Ancestor().generate("ancestor", 0, Split.TEST, 400)
    found = Counter(drawn.slices["distance"].ravel().tolist())
    assert 150 < found[0] < 250 and set(found) == {0, 1, 2, 3}
