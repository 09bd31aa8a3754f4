import pytest

from kdx.errors import KdxError
from kdx.own_parts.layout import laid_out
from kdx.own_parts.part import hash_of


def recorded(word: str, sources: dict[str, str]) -> tuple[str, str | None, dict[str, str]]:
    return word, hash_of(sources), sources


def test_a_file_lies_where_its_word_says():
    found = laid_out([recorded("a.py:A", {"a.py": "x", "h.py": "y"}), recorded("p/b.py:B", {"b.py": "z"})])
    assert found == {"a.py": "x", "h.py": "y", "p/b.py": "z"}


def test_a_package_lies_at_the_top():
    assert laid_out([recorded("word", {"pkg/a.py": "x"})]) == {"pkg/a.py": "x"}


def test_two_versions_of_a_file_do_not_overwrite_each_other():
    found = laid_out([recorded("a.py:A", {"a.py": "x"}), recorded("a.py:A", {"a.py": "y"})])
    assert found == {"a.py": "x", f"{hash_of({'a.py': 'y'})[:12]}/a.py": "y"}


@pytest.mark.parametrize(
    ("word", "sources"),
    [
        ("../a.py:A", {"a.py": ""}),
        ("/a.py:A", {"a.py": ""}),
        ("a.py:A", {"../a.py": ""}),
        ("a.py:A", {"/etc/a.py": ""}),
        ("a.py:A", {"a.py": "", "a.py/b.py": ""}),
    ],
)
def test_what_a_hostile_database_names_leads_nowhere(word, sources):
    with pytest.raises(KdxError, match="is not the source that its cells were made with"):
        laid_out([recorded(word, sources)])


@pytest.mark.parametrize("text", ["y", "\ud800", "("])
def test_a_source_that_somebody_put_in_the_place_of_another_is_not_written_out(text):
    word, sha256, _ = recorded("a.py:A", {"a.py": "x"})
    with pytest.raises(KdxError, match="is not the source that its cells were made with"):
        laid_out([(word, sha256, {"a.py": text})])
