"""A table as a value: its layout, and what is concluded from it."""

from dataclasses import FrozenInstanceError, fields, replace

import pytest
from sweeps import cell, seeded, sweep

from kdx.grid.plan import TableSpec
from kdx.report.table.build import tables
from kdx.report.table.layout import Layout, lay_out
from kdx.report.table.table import Table
from kdx.store.records import SweepRecord

ASKED = {"name": "t", "caption": "Kernels", "rows": ["kernel"], "columns": ["norm"], "baseline": {"kernel": "rbf"}}


def recorded() -> SweepRecord:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    scores = {"rbf-pre": [30.0, 31.0], "exponential-pre": [10.0, 10.1], "rbf-post": [29.0, 29.1]}
    return sweep(cells, [one for id, its in scores.items() for one in seeded(id, *its)], tables=[ASKED])


def test_a_table_is_its_layout_with_marks() -> None:
    record = recorded()
    (made,) = tables(record)
    layout = lay_out(record, TableSpec.model_validate(ASKED))
    unmarked = tuple(
        tuple(one and replace(one, best=False, near=False, untested=False) for one in row) for row in made.body
    )
    assert any(one.best for one in made.cells)
    assert replace(made, body=unmarked) == replace(
        made, **{one.name: getattr(layout, one.name) for one in fields(Layout)}
    )


def test_a_table_is_a_layout_from_which_nothing_need_be_concluded() -> None:
    layout = lay_out(recorded(), TableSpec.model_validate(ASKED))
    plain = Table(**{one.name: getattr(layout, one.name) for one in fields(Layout)})
    assert (plain.baseline, plain.groups, plain.differences, plain.audit, plain.beside) == ({}, (), (), (), None)
    assert (plain.best, plain.near, plain.untested, plain.notes, plain.definitions) == ("", "", "", (), ())


def test_a_table_never_changes() -> None:
    (made,) = tables(recorded())
    with pytest.raises(FrozenInstanceError):
        made.best = "none"  # type: ignore[misc]
