"""A grid is found by its path or by its name, and those that came with kdx are the tables that they say they are."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from each import each

from kdx.attention.distances import DistanceTable
from kdx.data.prepared import how_to_prepare
from kdx.data.text import KnownText
from kdx.errors import Faults, KdxError
from kdx.grid import shipped
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.grid.source import read
from kdx.grid.spec import CellSpec
from kdx.models.transformer import Stack
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Attention


@each("name", shipped.names())
def test_a_shipped_grid_opens_with_its_number_of_runs_and_the_command(name):
    head = head_of(name)
    runs = re.search(r"(\d+) runs?\b", head)
    assert runs and int(runs[1]) == most_runs(load_grid(name))
    assert f"kdx sweep {name}" in head


def most_runs(plan: Plan) -> int:
    """Those of a search and of its winners, or those of the plan."""
    searches = [cell.search.tuning for cell in plan.cells if cell.search]
    trials = sum(one.trials * len(one.seeds) for one in searches)
    return trials + len(searches) * len(plan.seeds) if searches else len(plan.runs)


def head_of(name: str) -> str:
    return "".join(line for line in shipped.find(name).open() if line.startswith("#"))


@each("name", shipped.names())
def test_a_shipped_grid_opens_with_how_its_text_is_prepared(name):
    named = {cell.spec.data.corpus for cell in load_grid(name).cells}
    texts = {corpus for corpus in named if isinstance(BUILT_IN[corpus], KnownText)}
    told = re.findall(r"kdx data prepare [^,;]+", head_of(name))
    assert set(told) == {how_to_prepare(text) for text in texts}


def test_a_file_comes_before_a_shipped_grid_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text("name: mine\n")
    assert shipped.find("quickstart").read_text() == "name: mine\n"


def test_a_relative_path_begins_where_it_is_reported(tmp_path):
    (tmp_path / "base.yaml").touch()
    assert shipped.find("base.yaml", tmp_path) == tmp_path / "base.yaml"
    with pytest.raises(Faults):
        shipped.find("base.yaml", tmp_path / "elsewhere")


@pytest.mark.parametrize("grid", ["", ".", "..", "x" * 5000, "a\0b", "quickstart/../quickstart", "/root\n"])
def test_what_is_nowhere_is_refused_with_what_there_is(grid):
    with pytest.raises(Faults) as refusal:
        shipped.find(grid)
    assert "quickstart" in str(refusal.value)


def test_a_misspelt_name_has_the_nearest_as_its_hint():
    with pytest.raises(Faults, match=r"no grid `quickstrt`\n  allowed: .*\n  hint: did you mean `quickstart`"):
        shipped.find("quickstrt")


def test_a_misspelt_name_is_compared_with_the_files_beside_it_first(tmp_path):
    (tmp_path / "order.yaml").touch()
    for grid in ("oder.yaml", "oder", "order"):
        with pytest.raises(Faults, match=r"hint: did you mean `order.yaml`"):
            shipped.find(grid, tmp_path)
    with pytest.raises(Faults, match=rf"hint: did you mean `{tmp_path}/order.yaml`"):
        shipped.find(tmp_path / "oder.yaml")
    with pytest.raises(Faults, match=r"hint: did you mean `shaw2018/table1-mini` or `tsai2019/table1-mini`"):
        shipped.find("table1-mini", tmp_path)


ASYMMETRIC = "Asym. (W_q ≠ W_k)"
T, P = "translation", "prediction"
TWINS = [
    name
    for name in shipped.names()
    if name.endswith(("-mini", "-small")) and not name.startswith("presets/") and not load_grid(name).searched
]


@pytest.mark.parametrize("size", ["", "-mini", "-small"])
def test_the_four_tables_share_their_cells(size):
    """The paper has 17 and 16 configurations; Table 4's direct sum with Eq. 7, per layer, is one more for each task."""
    cells: dict[str, set[str]] = {}
    places = 0
    for number in (1, 2, 3, 4):
        for cell in load_grid(f"tsai2019/table{number}{size}").cells:
            cells.setdefault(cell.spec.task, set()).add(cell.id)
            places += 1
    assert {task: len(ids) for task, ids in cells.items()} == {T: 17 + 1, P: 16 + 1}
    assert places == 47  # of which 46 in print: without positions, both placements of Table 3 are one cell


def ids(grid: str) -> dict[tuple[str, ...], str]:
    return {tuple(cell.labels.values()): cell.id for cell in load_grid(grid).cells}


def test_the_cells_of_shaw_et_al_and_the_controlled_ones_are_shared_too():
    first, second, third = (ids(f"shaw2018/table{number}") for number in (1, 2, 3))
    relative = first["Transformer (base)", "Relative position representations", "EN-DE"]
    assert relative == second["16",] == third["Yes", "Yes"]
    kernels = ids("tsai2019/table2")
    equal = ids("controlled/kernels")
    assert all(equal[where] == kernels[where] for where in equal if where[-1] == ASYMMETRIC)
    halves = ids("controlled/rbf")
    for task in (T, P):
        assert halves[task, "exponential"] == kernels[task, "exponential", ASYMMETRIC]
        assert halves[task, "rbf"] == kernels[task, "rbf", ASYMMETRIC]


@each("name", TWINS)
def test_a_twin_extends_its_table_and_overrides_presets_seeds_and_sizes_only(name):
    faults: list[KdxError] = []
    twin = read(shipped.find(name), faults).plain()
    assert not faults
    original = name.rpartition("-")[0]
    assert twin["extends"] == f"{original.rpartition('/')[2]}.yaml"
    assert set(twin) <= {"extends", "name", "description", "seeds", "preset", "tasks", "axes"}
    assert twin["name"] == name
    sizes = {"preset", "width", "heads", "inner", "clip", "sharing"}
    parts = {key: value for key, value in twin.items() if key in ("preset", "tasks", "axes")}
    for path, value in leaves(parts):
        assert path[-1] in sizes or value in (None, {}), path


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


@each("name", [name for name in TWINS if name.startswith(("tsai2019", "controlled", "modern"))])
def test_a_twin_has_the_choices_of_its_table(name):
    assert ids(name).keys() == ids(name.rpartition("-")[0]).keys()
    assert load_grid(name).tables == load_grid(name.rpartition("-")[0]).tables


@pytest.mark.parametrize(("size", "base"), [("", "-small"), ("-mini", "-mini")])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_modern_table_has_the_cells_of_the_papers_in_all_but_their_base(number, size, base):
    """What the base decides is one for all cells of a task, and what it does not is what the paper's cells have."""
    table, own = (load_grid(name) for name in (f"tsai2019/table{number}{base}", f"modern/tsai2019-table{number}{size}"))
    of_base = {"norm", "qk_norm", "model", "training"}
    rows = {tuple(cell.labels.values()): cell.spec for cell in table.cells}
    found = {
        tuple(word for word in cell.labels.values() if word not in ("of the paper", "rotary")): cell.spec
        for cell in own.cells
        if "rotary" not in cell.spec.position
    }
    assert found.keys() == rows.keys()
    for labels, spec in found.items():
        assert spec.model_dump(exclude=of_base) == rows[labels].model_dump(exclude=of_base)
        preset = load_grid(f"presets/{spec.task}-modern{base}").cells[0].spec
        assert spec.model_dump(include=of_base) == preset.model_dump(include=of_base)


@pytest.mark.parametrize(("number", "more"), [(1, 1), (2, 8), (3, 0), (4, 2)])
def test_a_modern_table_has_its_bases_own_positions_beside_the_papers(number, more):
    cells = [cell.spec for cell in load_grid(f"modern/tsai2019-table{number}").cells]
    turned = [spec.task for spec in cells if "rotary" in spec.position]
    assert (turned.count(T), turned.count(P)) == (more, more)
    for task in {*turned}:
        (own,) = load_grid(f"presets/{task}-modern-small").cells
        assert cell_id(own.spec) in {cell_id(spec) for spec in cells}


def size_of(spec: CellSpec) -> int:
    """Parameters of all layers that learn something: in a decoder, no row of a table that is of the future does."""
    across = Attention.ENCODER_DECODER if spec.task == "translation" else None
    with torch.device("meta"):
        encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF)
        decoder = Stack(spec, spec.model.decoder_layers, Attention.DECODER_SELF, cross_attention=across)
    total = sum(parameter.numel() for stack in (encoder, decoder) for parameter in stack.parameters())
    tables = [
        module
        for layer in decoder.layers
        for module in layer.self_attention.modules()
        if isinstance(module, DistanceTable)
    ]
    return total - sum(table.clip * table.weight[:, 0].numel() for table in tables)


@pytest.mark.parametrize("scale", ["", "-mini"])
@pytest.mark.parametrize("grid", ["controlled/positions", "controlled/kernels"])
def test_what_is_compared_at_equal_parameters_has_them(grid, scale):
    sizes: dict[str, list[int]] = {}
    for cell in load_grid(grid + scale).cells:
        sizes.setdefault(cell.spec.task, []).append(size_of(cell.spec))
    for task, found in sizes.items():
        assert max(found) <= 1.002 * min(found), (task, found)
