"""A field whose key is another one now keeps every id, and is read under both."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, create_model

from kdx.errors import Faults, KdxError, Place
from kdx.grid import former_keys as module
from kdx.grid import identity, sections
from kdx.grid.field_schema import fields_schema
from kdx.grid.former_keys import former_factors, under_todays_keys
from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.sections import Formerly, Neutral, Section, Training
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec

KEYS = st.text("abcdefgh", min_size=1, max_size=6)


class Former(Section):
    """As it was first."""

    depth: int = 1
    rate: Annotated[float, Neutral(0.0)] = 0.0


class Today(Section):
    """The same under other names, one of them renamed twice."""

    layers: Annotated[int, Formerly("depth", "levels")] = 1
    speed: Annotated[float, Neutral(0.0), Formerly("rate")] = 0.0


class Around(Section):
    """What holds it."""

    inner: Today = Field(default_factory=Today)


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_the_hashed_text_stays_under_the_first_key(depth: int, rate: float) -> None:
    before = identity.canonical(Former(depth=depth, rate=rate))
    assert identity.canonical(Today(layers=depth, speed=rate)) == before
    assert json.loads(identity.canonical(Around(inner=Today(layers=depth, speed=rate))))["inner"] == json.loads(before)


@given(
    st.sampled_from(["layers", "depth", "levels"]), st.sampled_from(["speed", "rate"]), st.integers(), st.floats(0, 1)
)
def test_every_key_is_read_and_todays_is_shown(depth_key: str, rate_key: str, depth: int, rate: float) -> None:
    read = Around.model_validate({"inner": {depth_key: depth, rate_key: rate}})
    assert read == Around(inner=Today(layers=depth, speed=rate))
    assert read.model_dump(mode="json") == {"inner": {"layers": depth, "speed": rate}}
    found = identity._whole({"inner": {depth_key: depth, rate_key: rate}}, Around)
    assert found == {"inner": {"layers": depth, "speed": rate}}


@given(st.lists(KEYS, min_size=2, max_size=8, unique=True), st.data())
def test_any_renamings_leave_every_id_as_it_was(keys: list[str], data: st.DataObject) -> None:
    """Whatever the names, and whichever of them is written."""
    half = len(keys) // 2
    fields = {f"{key}_now": key for key in keys[:half]}
    values = {key: data.draw(st.integers(-5, 5)) for key in fields}
    plain: Any = dict.fromkeys(keys[:half], (int, ...))
    renamed: Any = {now: (Annotated[int, Formerly(first)], ...) for now, first in fields.items()}
    before = create_model("before", __base__=Section, **plain)
    after = create_model("after", __base__=Section, **renamed)
    text = identity.canonical(before(**{fields[now]: value for now, value in values.items()}))
    written = {data.draw(st.sampled_from([now, fields[now]])): value for now, value in values.items()}
    assert identity.canonical(after.model_validate(written)) == text
    assert identity._whole(json.loads(text), after) == values


def test_a_field_under_two_keys_is_refused() -> None:
    with pytest.raises(ValidationError, match="layers is there twice"):
        Today.model_validate({"layers": 1, "levels": 2})


def test_the_schema_shows_the_key_of_today_alone() -> None:
    assert [*fields_schema(Today)] == ["layers", "speed"]


@pytest.fixture
def renamed(monkeypatch):
    """As if `training.warmup` had been `warm_up_steps` once, and `kernel` `similarity`."""

    def forget() -> None:
        caches = (sections.former_keys, module.former_factors, identity._fields, identity._marked)
        for cache in caches:
            cache.cache_clear()

    fields = (Training.model_fields["warmup"], "warm_up_steps"), (CellSpec.model_fields["kernel"], "similarity")
    of_kernel = module.CellFields.model_fields["kernel"], "similarity"
    for info, former in (*fields, of_kernel):
        monkeypatch.setattr(info, "metadata", [*info.metadata, Formerly(former)])
    forget()
    yield
    monkeypatch.undo()
    forget()


GRID = """
name: g
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
training: {steps: 20, %(warmup)s: 5}
axes:
  %(kernel)s: [rbf, exponential]
  approach-like:
    one: {training: {%(warmup)s: 7}}
    other: {norm: pre}
exclude: {%(kernel)s: rbf, training.%(warmup)s: 7}
tables:
  - {name: t, rows: [%(kernel)s, approach-like], where: {%(kernel)s: exponential}}
"""
NEW = {"warmup": "warmup", "kernel": "kernel"}
OLD = {"warmup": "warm_up_steps", "kernel": "similarity"}


def plan_of(tmp_path, words: dict[str, str], *given: str):
    path = tmp_path / "grid.yaml"
    path.write_text(GRID % words)
    return load_grid(path, given=given)


def test_a_grid_with_former_keys_is_read_with_a_note_that_names_the_new_ones(tmp_path, renamed) -> None:
    today, former = plan_of(tmp_path, NEW), plan_of(tmp_path, OLD)
    assert former == today and today.notes == ()
    assert len(former.cells) == 3
    assert any(note.endswith("`warm_up_steps` is called `warmup` now; it is read as that") for note in former.notes)
    assert any("`similarity` is called `kernel` now" in note for note in former.notes)
    assert plan_of(tmp_path, NEW, "training.warm_up_steps=9") == plan_of(tmp_path, NEW, "training.warmup=9")


def test_ids_go_on_under_the_first_key_and_cells_of_either_are_read(tmp_path, renamed) -> None:
    (cell, *_) = plan_of(tmp_path, NEW).cells
    text = identity.canonical(cell.spec)
    assert {"warm_up_steps"} <= json.loads(text)["training"].keys() and "similarity" in json.loads(text)
    for written in (text, text.replace("warm_up_steps", "warmup").replace("similarity", "kernel")):
        read = ResolvedSpec.read(written)
        assert (read.word("training.warmup"), read.word("kernel")) == (
            "7" if cell.spec.training.warmup == 7 else "5",
            cell.spec.kernel,
        )
        assert read.unknown == () and read.known == cell.spec


def test_a_grid_with_both_keys_is_refused_at_its_place(tmp_path, renamed) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text((GRID % NEW).replace("warmup: 5", "warmup: 5, warm_up_steps: 5"))
    with pytest.raises(Faults) as caught:
        load_grid(path)
    fault = caught.value.faults[0]
    assert fault.problem == "`warm_up_steps` is called `warmup` now, and both are here"
    assert isinstance(fault.place, Place) and fault.place.line == 5


def test_names_of_the_authors_own_stay(renamed) -> None:
    def node(value: Any) -> Node:
        inner = {key: node(one) for key, one in value.items()} if isinstance(value, dict) else value
        return Node(Place("g.yaml", 1, 1), inner, {})

    own = {"approaches": {"similarity": {"kernel": "rbf"}}, "axes": {"mine": {"similarity": {"norm": "pre"}}}}
    notes: list[str] = []
    faults: list[KdxError] = []
    assert under_todays_keys(node(own), former_factors(), notes, faults).plain() == own
    assert (notes, faults) == ([], [])


def test_nothing_is_renamed_today() -> None:
    """The first entry here wants a migration that writes `cell.resolved` anew, for the views."""
    assert former_factors() == {}
