"""Tables that a grid asks for: what is wrong with one is told where it stands."""

from pathlib import Path

import pytest

from kdx.errors import Faults
from kdx.grid.load import load_grid

GRID = """
task: translation
data: {corpus: synthetic-translation}
axes: {kernel: [rbf, linear], norm: [pre, post]}
tables:
"""


def faults_of(tmp_path: Path, tables: str) -> list[str]:
    file = tmp_path / "grid.yaml"
    file.write_text(GRID + tables)
    with pytest.raises(Faults) as refusal:
        load_grid(file)
    return [str(fault).replace(f"{tmp_path}/", "").splitlines()[0] for fault in refusal.value.faults]


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ("- {name: t, rows: [kernel]}\n", "grid.yaml:6:3: table `t`: 2 cells fall into one place, kernel = rbf; they"),
        ("- {name: t, rows: [kernl]}\n", "grid.yaml:6:20: table `t`: unknown factor `kernl`"),
        ("- {name: t, rows: [kernel, norm]}\n- {name: t, rows: [norm, kernel]}\n", "grid.yaml:7:10: two tables named"),
        ("- {name: t, rows: [kernel, norm], baseline: rbff}\n", "grid.yaml:6:45: no row or column of the table is"),
        ("- {name: t, rows: [kernel, norm], cel: mean}\n", "grid.yaml:6:35: unknown key `tables.cel`"),
        ("  3\n", "grid.yaml:6:3: `3` as tables"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path: Path, tables: str, fault: str) -> None:
    (found,) = faults_of(tmp_path, tables)
    assert found.startswith(fault)


def test_a_word_of_no_table_and_of_the_mapping_form_are_the_same_baseline(tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    table = "- {name: %s, rows: kernel, columns: norm, baseline: %s}\n"
    file.write_text(GRID + table % ("a", "pre") + table % ("b", "{norm: pre}") + table % ("c", "{}"))
    one, other, none = load_grid(file).tables
    assert one.baseline == other.baseline == {"norm": "pre"} and none.baseline == {}
