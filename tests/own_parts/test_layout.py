import pytest

from kdx.errors import KdxError
from kdx.own_parts.layout import laid_out


def test_a_file_lies_where_its_word_says():
    found = laid_out([("a.py:A", "1" * 64, {"a.py": "x", "h.py": "y"}), ("p/b.py:B", "2" * 64, {"b.py": "z"})])
    assert found == {"a.py": "x", "h.py": "y", "p/b.py": "z"}


def test_a_package_lies_at_the_top():
    assert laid_out([("word", "1" * 64, {"pkg/a.py": "x"})]) == {"pkg/a.py": "x"}


def test_two_versions_of_a_file_do_not_overwrite_each_other():
    found = laid_out([("a.py:A", "1" * 64, {"a.py": "x"}), ("a.py:A", "2" * 64, {"a.py": "y"})])
    assert found == {"a.py": "x", "222222222222/a.py": "y"}


@pytest.mark.parametrize(
    ("word", "sources"),
    [
        ("../a.py:A", {"a.py": ""}),
        ("/a.py:A", {"a.py": ""}),
        ("a.py:A", {"../a.py": ""}),
        ("a.py:A", {"/etc/a.py": ""}),
    ],
)
def test_what_a_hostile_database_names_leads_nowhere(word, sources):
    with pytest.raises(KdxError, match="no source of a part"):
        laid_out([(word, "1" * 64, sources)])
