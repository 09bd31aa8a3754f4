"""What changes a cell's id, and what does not."""

import json
from pathlib import Path
from typing import Annotated

from grids import cell
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.grid.field_types import Later
from kdx.grid.fields import CellFields
from kdx.grid.identity import cell_id, id_of
from kdx.grid.load import load_grid
from kdx.grid.sections import Model
from kdx.grid.shipped import names
from kdx.grid.spec import CellSpec, later_fields, read_plain
from kdx.tasks import TASKS
from kdx.vocabulary import Norm, Symmetry

SHIPPED = Path(__file__).parent / "shipped_ids.json"


def test_a_written_default_and_an_unwritten_one_are_one_cell():
    assert cell_id(cell()) == cell_id(cell(kernel="exponential", norm="post", model={"width": 128}, position="none"))


def test_every_choice_changes_the_id(figure):
    base = cell()
    others = [
        cell(kernel="rbf"),
        cell(symmetry="symmetric"),
        cell(position="product"),
        cell(position="direct-sum"),
        cell(position="direct-sum", inject="per-layer"),
        cell(position="product", placement="decoder-self"),
        cell(value="with-position"),
        cell(norm="pre"),
        cell(training={"learning_rate": 0.001}),
        cell(data={"corpus": "other"}),
        cell(select={"metric": "loss"}),
        cell("prediction"),
    ]
    new = {cell_id(spec) for spec in others} - {cell_id(base)}
    assert len(new) == len(others)
    figure(f"{len(others)} changes of a cell, {len(new)} other cells")


def test_numbers_are_hashed_by_value():
    assert cell_id(cell(training={"learning_rate": 1})) == cell_id(cell(training={"learning_rate": 1.0}))


class _Grown(Model):
    gates: Annotated[str, Later("none")] = "many"


class _Later(CellFields):
    depth: Annotated[int, Later(1)] = 1
    model: _Grown = _Grown.model_construct()


def test_a_field_added_later_is_not_hashed_at_its_neutral_value_only():
    before = json.loads(cell().text)
    assert later_fields(_Later) == later_fields(CellFields) | {"depth": 1, "model.gates": "none"}

    def with_fields(depth: int, gates: str) -> dict:
        return before | {"depth": depth, "model": before["model"] | {"gates": gates}}

    assert id_of(with_fields(1, "none"), _Later) == id_of(before, _Later) == cell_id(cell())
    others = [with_fields(2, "none"), with_fields(1, "many"), before | {"gates": "none"}, with_fields(1, None)]
    assert len({id_of(other, _Later) for other in (before, *others)}) == 5
    assert id_of(with_fields(1, "none")) != id_of(before)


def test_a_recorded_cell_has_the_neutral_value_of_a_field_added_later():
    read = read_plain(cell().text, _Later)
    assert (read["depth"], read["model"]["gates"]) == (1, "none")
    assert {**read, "depth": 2} == read_plain(json.dumps({**read, "depth": 2}), _Later)


@given(
    st.builds(
        dict,
        kernel=st.sampled_from(list(KERNELS)),
        symmetry=st.sampled_from(Symmetry),
        position=st.sampled_from(list(POSITIONS)),
        value=st.sampled_from([None, "with-position"]),
        norm=st.sampled_from(Norm),
    ),
    st.sampled_from(list(TASKS)).flatmap(
        lambda task: st.tuples(st.just(task), st.sampled_from([None, *TASKS.definition(task).spaces]))
    ),
)
def test_a_cell_read_back_from_its_json_is_the_same_cell(choices, seen):
    task, space = seen
    fields = {"task": task, "space": space, "data": {"corpus": "any"}, "training": {"batch_tokens": 1280}}
    try:
        spec = CellSpec.model_validate({**fields, "model": {"width": 96}, **choices})
    except ValidationError:
        # A space that has less than a sequence has not every choice, nor has an encoder, which sees what comes after.
        assert TASKS.definition(task).spaces or POSITIONS.definition(choices["position"]).past_only
        return
    again = CellSpec.model_validate(json.loads(spec.text))
    assert again.text == spec.text
    assert again == spec and json.loads(spec.text) == spec.model_dump(mode="json", by_alias=True)


def test_the_ids_of_the_shipped_grids_are_frozen():
    """A change of these ids makes every recorded run of the shipped grids a stranger; new grids may be added."""
    frozen = json.loads(SHIPPED.read_text())
    assert set(frozen) <= set(names())
    for name in names():
        ids = {" · ".join(cell.labels.values()): cell.id for cell in load_grid(name).cells}
        message = f"{name}: if the grid is new, add {json.dumps(ids, ensure_ascii=False)}"
        assert [*ids.items()] == [*frozen.get(name, {}).items()], message
