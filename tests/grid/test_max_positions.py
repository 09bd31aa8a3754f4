import pytest

from kdx.fingerprint import fingerprint
from kdx.tasks import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_cached_corpus_outlives_changes_of_attention(task):
    """The code that makes a corpus is part of its key in the cache, and attention is none of it."""
    modules = fingerprint({TASKS.definition(task).data.reader.partition(":")[0]}).modules
    assert modules and not [module for module in modules if module.startswith("kdx.attention")]


def test_a_reader_of_text_depends_on_how_many_positions_there_are():
    assert "kdx.grid.max_positions" in fingerprint({"kdx.data.parallel"}).modules
