"""The vocabulary is words, never numbers."""

import inspect
import re
from enum import Enum, StrEnum

from each import each

from kdx import vocabulary

VOCABULARY = [kind for _, kind in inspect.getmembers(vocabulary, inspect.isclass) if kind not in (Enum, StrEnum)]


@each("kind", VOCABULARY, told=lambda kind: kind.__name__)
def test_a_choice_is_a_lower_case_word_named_as_it_is_written(kind):
    assert issubclass(kind, StrEnum) and kind.__doc__
    for member in kind:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", member.value)
        assert member.name == member.value.replace("-", "_").upper()
        assert f"{member}" == member.value
