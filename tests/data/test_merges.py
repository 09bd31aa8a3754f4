import io
import tarfile

from hypothesis import example, given, settings
from hypothesis import strategies as st
from subword_nmt.learn_bpe import learn_bpe

from kdx.data.merges import learn_merges
from kdx.data.vocabulary import count_words


def by_the_tool(text: str, limit: int) -> list[tuple[str, ...]]:
    """The merges that subword-nmt itself learns, with our mark at the end of a word."""
    codes = io.StringIO()
    learn_bpe(io.StringIO(text), codes, limit)
    _, *merges = codes.getvalue().splitlines()
    return [tuple(piece.replace("</w>", " ") for piece in merge.split(" ")) for merge in merges]


# Few letters, so that pairs overlap, repeat and tie; `;` sorts before the tool's mark and `=` after it.
WORD = st.text("ab;=\\", min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORD, min_size=1, max_size=40).map(" ".join), st.integers(1, 40))
@example("aaaa aaa aa aaaaa baaab", 10)
@example("abab ababab babab", 10)
@example("hab habe haben haber abend abends", 40)
def test_merges_are_those_of_subword_nmt(text, limit):
    text += " ab"  # the tool fails on a text without any pair
    assert learn_merges(count_words([text]), limit) == by_the_tool(text, limit)


def test_merges_of_real_text_are_those_of_subword_nmt(shared):
    with tarfile.open(shared / "data" / "iwslt14.tar.xz") as archive:
        files = [archive.extractfile(f"iwslt14/valid.{suffix}") for suffix in ("de", "en")]
        text = "\n".join(line for file in files if file for line in file.read().decode().split("\n")[:800])
    assert learn_merges(count_words(text.split("\n")), 300) == by_the_tool(text, 300)


def test_merging_ends_where_no_pair_comes_twice():
    assert learn_merges({"abc": 2, "xyz": 1}, 10) == [("b", "c "), ("a", "bc ")]
    assert learn_merges({"a": 5}, 10) == learn_merges({}, 10) == []


def test_the_tools_mark_within_a_text_is_letters():
    """There the tool itself takes `a</w>` inside a word for an `a` that ends one."""
    merges = learn_merges({"a</w>b": 3, "ca": 1}, 10)
    assert ("".join(piece for piece in merges[-1])) == "a</w>b "
