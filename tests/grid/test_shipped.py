"""A grid is found by its path or by its name, and those that came with kdx are the tables that they say they are."""

import re
from collections.abc import Iterator, Mapping
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
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.source import read
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import Labelled, LayoutBuilder
from kdx.models.transformer import Stack
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Attention


def test_every_shipped_grid_is_found_by_name():
    assert "quickstart" in shipped.names()
    for name in shipped.names():
        assert shipped.find(name) == shipped.folder() / f"{name}.yaml"
        assert shipped.find(name).is_file()


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


@pytest.mark.parametrize(
    "grid", ["quickstrt", "", ".", "..", "x" * 5000, "a\0b", "quickstart/../quickstart", "/root\n"]
)
def test_what_is_nowhere_is_refused_with_what_there_is(grid):
    with pytest.raises(Faults) as refusal:
        shipped.find(grid)
    assert "quickstart" in str(refusal.value)


VASWANI, SHAW, DAI, OURS = (
    "Vaswani et al. (2017), Eq. 4",
    "Shaw et al. (2018), Eq. 6",
    "Dai et al. (2019), Eq. 5",
    "Tsai et al. (2019), Eq. 9",
)
NONE = "No positional embedding"
ASYMMETRIC, SYMMETRIC = "Asym. (W_q ≠ W_k)", "Sym. (W_q = W_k)"
WITH, WITHOUT = "I (Eq. 7)", "II (Eq. 8)"
A_B_C, A_B, C = (
    "encoder-self/encoder-decoder/decoder-self",
    "encoder-self/encoder-decoder",
    "decoder-self",
)
T, P = "translation", "prediction"

# Every cell that the papers print a number in (or "not converge"): grid, table, row, column, and what sets it apart.
PUBLISHED: list[tuple[str, str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = [
    *(
        ("tsai2019/table1", "table1", (row,), (task,), {"task": task, "kernel": "exponential", **factors})
        for row, task, factors in [
            (VASWANI, T, {"position": ["direct-sum"], "symmetry": "asymmetric", "value": "with-position"}),
            (VASWANI, P, {"position": ["direct-sum"], "symmetry": "asymmetric", "value": "with-position"}),
            (SHAW, T, {"position": ["lookup"], "symmetry": "asymmetric", "value": "without-position"}),
            (SHAW, P, {"position": ["lookup"], "symmetry": "asymmetric", "value": "with-position"}),
            (DAI, T, {"position": ["relative"], "symmetry": "asymmetric", "value": "without-position"}),
            (DAI, P, {"position": ["relative"], "symmetry": "asymmetric", "value": "without-position"}),
            (OURS, T, {"position": ["product"], "symmetry": "symmetric", "value": "without-position"}),
            (OURS, P, {"position": ["product"], "symmetry": "symmetric", "value": "without-position"}),
        ]
    ),
    *(
        (
            "tsai2019/table2",
            "table2",
            (kernel,),
            (task, column),
            {"task": task, "position": [position], "kernel": kernel, "symmetry": symmetry},
        )
        for kernel in ("linear", "polynomial", "exponential", "rbf")
        for task, position in ((T, "direct-sum"), (P, "relative"))
        for column, symmetry in ((ASYMMETRIC, "asymmetric"), (SYMMETRIC, "symmetric"))
    ),
    *(
        (
            "tsai2019/table3",
            f"table3-{task}",
            (row, words),
            (),
            {"task": task, "position": position, "placement": words},
        )
        for task, row, words, position in [
            (T, OURS, A_B_C, ["product"]),
            (T, OURS, A_B, ["product"]),
            (T, NONE, "none", []),
            (P, VASWANI, C, ["direct-sum"]),
            (P, OURS, C, ["product"]),
            (P, NONE, "none", []),
        ]
    ),
    *(
        (
            "tsai2019/table4",
            "table4",
            (row,),
            (task, column),
            {"task": task, "position": [position], "value": value, "kernel": "exponential", "symmetry": symmetry},
        )
        for row, position, symmetry in [
            (VASWANI, "direct-sum", "asymmetric"),
            (SHAW, "lookup", "asymmetric"),
            (DAI, "relative", "asymmetric"),
            (OURS, "product", "symmetric"),
        ]
        for task in (T, P)
        for column, value in ((WITH, "with-position"), (WITHOUT, "without-position"))
    ),
    *(
        (
            "shaw2018/table1",
            "table1",
            (f"Transformer ({size})", f"{kind} position representations"),
            (language,),
            {"data.corpus": f"wmt14-{language.lower()}", "model.width": width, "model.dropout": dropout, **factors},
        )
        for size, width, k, languages in [
            ("base", 512, 16, {"EN-DE": 0.1, "EN-FR": 0.1}),
            ("big", 1024, 8, {"EN-DE": 0.3, "EN-FR": 0.1}),
        ]
        for language, dropout in languages.items()
        for kind, factors in {
            "Absolute": {"position": ["direct-sum"], "value": "with-position", "clip": None},
            "Relative": {"position": ["lookup"], "value": "table", "clip": k},
        }.items()
    ),
    *(
        (
            "shaw2018/table2",
            "table2",
            (str(k),),
            (),
            {"data.corpus": "wmt14-en-de", "position": ["lookup"], "value": "table", "clip": k, "sharing": "per-head"},
        )
        for k in (0, 1, 2, 4, 16, 64, 256)
    ),
    *(
        (
            "shaw2018/table3",
            "table3",
            (keys, values),
            (),
            {"position": position, "value": value, "clip": None if keys == values == "No" else 16},
        )
        for keys, position in (("Yes", ["lookup"]), ("No", []))
        for values, value in (("Yes", "table"), ("No", "without-position"))
    ),
]
TABLES = sorted({(grid, table) for grid, table, *_ in PUBLISHED})
TWINS = [
    name
    for name in shipped.names()
    if name.endswith(("-mini", "-small")) and not name.startswith("presets/") and not load_grid(name).searched
]


def labelled(plan: Plan) -> list[Labelled]:
    return [(cell.labels, ResolvedSpec.of(cell.spec)) for cell in plan.cells]


def setting(spec: Mapping[str, Any], factor: str) -> Any:
    value: Any = spec
    for step in factor.split("."):
        value = value.get(step)
    return "/".join(value) or "none" if factor == "placement" else value


@pytest.mark.parametrize(("grid", "table"), TABLES)
def test_a_papers_table_has_its_rows_columns_and_cells_and_no_others(grid, table):
    plan = load_grid(grid)
    cells = labelled(plan)
    layout = LayoutBuilder(cells).build(next(asked for asked in plan.tables if asked.name == table))
    published = {
        (row, column): factors for its_grid, its, row, column, factors in PUBLISHED if (its_grid, its) == (grid, table)
    }
    found = {
        (layout.rows[row], layout.columns[column]): cells[index][1].plain for (row, column), index in layout.at.items()
    }
    assert found.keys() == published.keys()
    for where, factors in published.items():
        assert {factor: setting(found[where], factor) for factor in factors} == factors, where


def test_the_papers_print_65_numbers():
    assert len(PUBLISHED) == 8 + 16 + 6 + 16 + 8 + 7 + 4
    tables = [(*one[:4],) for one in PUBLISHED]
    assert len(set(tables)) == len(tables)


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


@pytest.mark.parametrize("size", ["", "-mini", "-small"])
def test_a_cell_of_two_tables_is_one(size):
    first, second, third, fourth = (ids(f"tsai2019/table{number}{size}") for number in (1, 2, 3, 4))
    a_b_c = "encoder-self+encoder-decoder+decoder-self"
    assert first[T, VASWANI] == second[T, "exponential", ASYMMETRIC]
    assert first[P, DAI] == second[P, "exponential", ASYMMETRIC]
    assert first[T, OURS] == third[T, OURS, a_b_c] == fourth[T, OURS, WITHOUT]
    assert first[P, OURS] == third[P, OURS] == fourth[P, OURS, WITHOUT]
    assert first[P, VASWANI] == third[P, VASWANI]
    assert first[T, SHAW] == fourth[T, SHAW, WITHOUT] and first[P, SHAW] == fourth[P, SHAW, WITH]
    assert all(first[task, DAI] == fourth[task, DAI, WITHOUT] for task in (T, P))


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
