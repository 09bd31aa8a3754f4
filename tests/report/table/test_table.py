"""A table as a value: its layout, and what is concluded from it."""

from sweeps import cell, seeded, sweep

from kdx.grid.plan import TableSpec
from kdx.report.table.comparisons import Mark
from kdx.report.table.layout import lay_out
from kdx.report.tables import tables
from kdx.store.records import SweepRecord

SPEC = {"name": "t", "caption": "Kernels", "rows": ["kernel"], "columns": ["norm"], "baseline": {"kernel": "rbf"}}


def recorded() -> SweepRecord:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    scores = {"rbf-pre": [30.0, 31.0], "exponential-pre": [10.0, 10.1], "rbf-post": [29.0, 29.1]}
    return sweep(cells, [one for id, its in scores.items() for one in seeded(id, *its)], tables=[SPEC])


def test_a_table_is_its_layout_and_what_is_concluded_from_it() -> None:
    record = recorded()
    (made,) = tables(record)
    assert made.layout == lay_out(record, [TableSpec.model_validate(SPEC)])[0]
    assert Mark.BEST in made.marks.values() and made.marks.keys() <= made.layout.places.keys()
