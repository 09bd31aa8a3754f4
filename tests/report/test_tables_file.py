"""A file of tables is read as a grid's tables are, with the same messages at their places."""

from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import cell, run, sweep

from kdx.errors import Faults
from kdx.report.selection.joined import joined
from kdx.report.tables import tables, with_tables_of
from kdx.store.records import SweepRecord

CELLS = [cell("a", kernel="rbf", norm="pre"), cell("b", kernel="linear", norm="pre")]
LONGER = [cell("c", labels={"kernel": "rbf"}, kernel="rbf", norm="pre", training={"steps": 7})]


def planned() -> SweepRecord:
    return sweep(CELLS, [run("a", 0, 1.0, 1.0, id=1)], name="monday")


def both() -> SweepRecord:
    return joined([planned(), replace(sweep(LONGER, [], name="tuesday"), id=2)])


@pytest.fixture
def write(tmp_path: Path):
    def written(text: str) -> Path:
        (tmp_path / "tables.yaml").write_text(text)
        return tmp_path / "tables.yaml"

    return written


def faults_of(path: Path, record: SweepRecord) -> list[str]:
    with pytest.raises(Faults) as refusal:
        with_tables_of(path, record)
    return [str(fault).replace(f"{path.parent}/", "") for fault in refusal.value.faults]


def test_its_tables_take_the_place_of_the_grids(write) -> None:
    path = write("tables:\n- {name: mine, caption: Mine, rows: kernel, columns: [norm], baseline: linear}\n")
    record = replace(planned(), grid={"tables": [{"name": "grids", "rows": ["norm"]}], "axes": []})
    (table,) = tables(with_tables_of(path, record))
    assert (table.layout.name, table.layout.caption, table.baseline) == ("mine", "Mine", {"kernel": "linear"})
    assert len(table.layout.places) == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tables:\n- {name: t, rows: [kernl]}\n", "tables.yaml:2:20: table `t`: unknown factor `kernl`"),
        ("tables:\n- {name: t, rows: [norm]}\n", "tables.yaml:2:3: table `t`: 2 cells fall into one place, norm = pre"),
        ("tables:\n- {name: t, rows: [kernel], cel: mean}\n", "tables.yaml:2:29: unknown key `tables.cel`"),
        ("tables:\n- {name: t, rows: [kernel], where: {kernel: rfb}}\n", "tables.yaml:2:45: table `t`: no cell where"),
        ("tables:\n- {name: t, rows: [kernel], metric: beu}\n", "tables.yaml:2:37: table `t`: unknown metric `beu`"),
        ("tables:\n- {name: t, rows: [kernel], baseline: rfb}\n", "tables.yaml:2:39: no row or column of the table is"),
        ("tables: []\n", "tables.yaml:1:9: `[]` as tables"),
        ("tabels: []\n", "tables.yaml:1:1: unknown key `tabels`"),
        ("seeds: 3\ntables:\n- {name: t, rows: [kernel]}\n", "tables.yaml:1:1: unknown key `seeds`"),
        ("tables:\n", "tables.yaml:1:1: `tables` has no value"),
        ("{}\n", "tables.yaml:1:1: the file asks for no tables"),
        ("", "tables.yaml: the file of tables is empty"),
        ("tables: [\n", "tables.yaml:2:1: "),
    ],
)
def test_what_is_wrong_is_reported_at_its_place(write, text: str, fault: str) -> None:
    assert any(result.startswith(fault) for result in faults_of(write(text), planned()))


def test_every_fault_is_reported_at_once(write) -> None:
    path = write("tables:\n- {name: t, rows: [kernel], cel: mean}\n- {name: t, row: [kernel]}\nother: 1\n")
    assert [result.partition(": ")[0] for result in faults_of(path, planned())] == [
        "tables.yaml:2:29",
        "tables.yaml:3:13",
        "tables.yaml:4:1",
    ]


def test_a_file_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    (result,) = faults_of(tmp_path / "absent.yaml", planned())
    assert result == "absent.yaml: cannot read the file of tables: No such file or directory"


def test_the_sweep_is_a_factor_of_several_and_of_one(write) -> None:
    path = write("tables:\n- {name: t, rows: [kernel], columns: [sweep], baseline: monday}\n")
    (table,) = tables(with_tables_of(path, both()))
    assert table.layout.columns == (("monday",), ("tuesday",)) and table.baseline == {"sweep": "monday"}
    (table,) = tables(with_tables_of(path, joined([planned()])))
    assert table.layout.columns == (("monday",),)


def test_cells_of_two_sweeps_in_one_place_are_reported_at_the_table(write) -> None:
    (result,) = faults_of(write("tables:\n- {name: t, rows: [kernel]}\n"), both())
    assert result.startswith("tables.yaml:2:3: table `t`: 2 cells of the sweeps monday and tuesday fall into one place")
