import pytest

from kdx.store.json_object import ANY, GRID, SUMS, TEXTS, JsonObject, UnexpectedJsonError


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (TEXTS, '{"kernel": "rbf"}'),
        (GRID, '{"seeds": [0, 9223372036854775807], "tables": [{"name": "t", "rows": ["kernel"]}], "more": [null]}'),
        (SUMS, '{"targets": [], "nats": [1, 0.5]}'),
        ({ANY: object}, '{"any": {"thing": [1, "x", null]}}'),
    ],
)
def test_an_object_of_its_shape_is_read(shape, text: str):
    assert JsonObject("labels", shape).read(text)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (TEXTS, '{"kernel": 1e30}'),
        (TEXTS, "[]"),
        (TEXTS, "{"),
        (GRID, '{"seeds": [-1]}'),
        (GRID, '{"tables": [1]}'),
        (SUMS, '{"nats": [1, null]}'),
        (SUMS, '{"nats": [1000000000000000000000000000000]}'),
        ({ANY: object}, '{"any": {"thing": [1000000000000000000000000000000]}}'),
    ],
)
def test_any_other_is_refused_with_the_name_of_its_column(shape, text: str):
    with pytest.raises(UnexpectedJsonError, match="its `labels` is"):
        JsonObject("labels", shape).read(text)
