"""What a column holds is said once: SQL refuses to write what Python would refuse to read."""

import pytest

from kdx.store.columns import Json, UnexpectedValueError, checked
from kdx.store.schema import run


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("0/../../precious", "'0/../../precious'"),
        (-1, "-1"),
        (2.0, "2.0"),
        ("x" * 1000, f"'{'x' * 59}…"),
        (b"\0", r"b'\x00'"),
    ],
)
def test_a_refusal_names_column_value_and_what_is_allowed(value, quoted):
    with pytest.raises(UnexpectedValueError) as caught:
        checked(run.c.generation, value)
    assert str(caught.value) == (
        f"run.generation is {quoted}, which kdx never writes there; allowed: a whole number from 0 to 1,000,000,000"
    )


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "{", "[]", '{"a": Infinity}', f'{{"a": {2**63}}}', 3, None]
)
def test_json_that_is_none_or_no_object_is_refused(text):
    with pytest.raises(UnexpectedValueError):
        Json(10**6, lambda found: True, "an object").check(text)


def test_json_of_another_form_is_refused():
    kind = Json(100, lambda found: "a" in found, "an object with a")
    assert kind.check('{"a": 1}') == {"a": 1}
    assert kind.check(f'{{"a": {-(2**63)}}}') == {"a": -(2**63)}
    with pytest.raises(UnexpectedValueError, match="allowed: an object with a"):
        kind.check('{"b": 1}')
