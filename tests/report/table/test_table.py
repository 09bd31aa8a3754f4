"""A table as a value: its layout, and what is concluded from it."""

from dataclasses import FrozenInstanceError

import pytest
from sweeps import cell, seeded, sweep

from kdx.grid.plan import TableSpec
from kdx.report.table.comparisons import Mark
from kdx.report.table.layout import lay_out
from kdx.report.table.table import Table
from kdx.report.tables import tables
from kdx.store.records import SweepRecord

ASKED = {"name": "t", "caption": "Kernels", "rows": ["kernel"], "columns": ["norm"], "baseline": {"kernel": "rbf"}}


def recorded() -> SweepRecord:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    scores = {"rbf-pre": [30.0, 31.0], "exponential-pre": [10.0, 10.1], "rbf-post": [29.0, 29.1]}
    return sweep(cells, [each for id, values in scores.items() for each in seeded(id, *values)], tables=[ASKED])


def test_a_table_is_its_layout_and_what_is_concluded_from_it() -> None:
    record = recorded()
    (table,) = tables(record)
    assert table.layout == lay_out(record, [TableSpec.model_validate(ASKED)])[0]
    assert Mark.BEST in table.marks.values() and table.marks.keys() <= table.layout.places.keys()


def test_of_a_layout_nothing_need_be_concluded() -> None:
    plain = Table(*lay_out(recorded(), [TableSpec.model_validate(ASKED)]))
    assert (plain.baseline, plain.groups, plain.differences, plain.audit, plain.published) == ({}, (), (), (), None)
    assert (plain.marks, plain.legend, plain.notes, plain.definitions) == ({}, {}, (), ())


def test_a_table_never_changes() -> None:
    (table,) = tables(recorded())
    with pytest.raises(FrozenInstanceError):
        table.legend = {}  # type: ignore[misc]
