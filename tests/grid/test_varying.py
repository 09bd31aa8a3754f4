"""The fields in which cells differ."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.varying import value, varying, varying_first

BASE = {"task": "t", "kernel": "rbf", "position": ["product"], "training": {"steps": 10, "schedule": {"warmup": 3}}}


def test_the_fields_that_differ_are_named_with_their_values_in_order():
    other = BASE | {"kernel": "linear", "training": {"steps": 10, "schedule": {"warmup": 5}}}
    third = other | {"position": [], "degree": 2}
    assert varying([BASE, other, third]) == {
        "kernel": ("rbf", "linear"),
        "position": (["product"], []),
        "training.schedule.warmup": (3, 5),
        "degree": (None, 2),
    }


def test_one_cell_and_equal_cells_vary_in_nothing():
    assert varying([]) == varying([BASE]) == varying([BASE, BASE]) == {}


def test_what_varies_comes_first_at_each_level_and_nothing_is_lost():
    found = varying_first(BASE, ["training.schedule.warmup", "kernel", "degree"])
    assert found == BASE
    assert list(found) == ["training", "kernel", "task", "position"]
    assert list(found["training"]) == ["schedule", "steps"]


def test_a_field_that_is_not_there_has_no_value():
    assert value(BASE, "training.schedule.warmup") == 3
    assert value(BASE, "kernel.degree") is None and value(BASE, "training.decay") is None


leaf = st.integers(0, 2) | st.sampled_from(["a", "b"]) | st.lists(st.integers(0, 1), max_size=2)
cells = st.lists(
    st.dictionaries(st.sampled_from("abc"), leaf | st.dictionaries(st.sampled_from("xy"), leaf, min_size=1)), max_size=5
)


@given(cells)
def test_cells_are_equal_in_every_field_that_is_not_named(drawn):
    found = varying(drawn)
    for one in drawn:
        for field, values in found.items():
            assert value(one, field) in values and len(values) > 1
    if not found and drawn:
        assert all(one == drawn[0] for one in drawn)
