"""The description of a prepared corpus."""

import pytest

from kdx.data.prepare import prepare
from kdx.data.prepared import corpus_folder, prepared_corpora, read_about
from kdx.errors import KdxError


def test_two_corpora_are_listed_by_name(pairs, plain):
    prepare("b", plain)
    prepare("a", pairs)
    assert [about.name for about in prepared_corpora()] == ["a", "b"]


@pytest.mark.parametrize("damage", ["", "[]", '{"name": "pets"}'])
def test_damaged_about_is_told(pairs, damage):
    prepare("pets", pairs)
    path = corpus_folder("pets") / "about.json"
    path.write_text(damage)
    with pytest.raises(KdxError) as caught:
        read_about(path.parent)
    assert str(caught.value).startswith(f"{path}: the description of a corpus is damaged: ")
    assert caught.value.hint == f"remove {path.parent} and prepare the corpus again"
