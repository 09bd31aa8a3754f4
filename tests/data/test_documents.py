"""The documents of a test: articles where the text has them, blocks of neighbours elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.data.corpora.wikitext2 import TITLE
from kdx.data.documents import BLOCKS, Documents, blocks, of_stream
from kdx.data.vocabulary import END, WordVocabulary

TEXT = """
 = A city =
 It has walls .

 = = Walls = =
 Of stone .
 = k and a nominal k =

 = Another <unk> =

 It has none .
"""


def of_text(text: str, title: str | None = TITLE) -> tuple[list[str], Documents]:
    """The words of a text with its line ends, and its documents."""
    vocabulary = WordVocabulary.learn({word: 1 for word in text.split() if word != "<unk>"}, None)
    stream = [token for line in text.splitlines() for token in (*vocabulary.encode(line), END)]
    words = [word for line in text.splitlines() for word in (*line.split(), "\n")]
    return words, of_stream(np.array(stream, np.int32), vocabulary, title)


def test_a_title_after_an_empty_line_begins_an_article():
    words, result = of_text(TEXT)
    assert result.unit == "article" and len(words) == len(result.of_items)
    assert " ".join(words[i] for i in np.flatnonzero(result.of_items == 1)).startswith("= Another <unk> = \n")
    assert set(result.of_items) == {0, 1} and (np.diff(result.of_items) >= 0).all()


@pytest.mark.parametrize("text", [TEXT, "", "\n = A city =\n It has walls .\n"])
def test_a_text_without_titles_or_with_one_article_is_cut_into_blocks(text):
    words, result = of_text(text, None if text == TEXT else TITLE)
    assert (result.unit, result.of_items.tolist()) == ("block", blocks(len(words)).of_items.tolist())


@given(st.integers(0, 5 * BLOCKS))
def test_blocks_are_of_neighbours_and_nearly_equal(items):
    result = blocks(items).of_items
    sizes = np.bincount(result)
    assert len(result) == items and len(sizes) == min(items, BLOCKS) and (np.diff(result) >= 0).all()
    assert not items or (sizes.max() - sizes.min() <= 1 and sizes.min() >= 1)
