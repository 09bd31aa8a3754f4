"""Reads what the tables of a report need, and builds them."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdx.cli.context import Context
from kdx.cli.named_runs import load_named
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.selection.joined import joined
from kdx.report.table.bleu_randomisation import Translations
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables
from kdx.store.database import Database
from kdx.store.reading import outputs_of
from kdx.store.records import SweepRecord
from kdx.vocabulary import Split

if TYPE_CHECKING:
    from kdx.grid.sections import Data

TEXTS = "test/translations"
"""The name of a run's output with its translations."""


def load_together(database: Database, sweeps: Sequence[str], context: Context, *, join: bool) -> SweepRecord:
    """Return these sweeps, joined if there are several; the most recent one if there is none.

    Args:
        sweeps: names and grid files.
        join: whether a single sweep is joined too, so that its tables can name it.

    Raises:
        KdxError: there is no such sweep, or one that cannot be joined.
    """
    records = [load_named(database, sweep, context) for sweep in sweeps or (None,)]
    return joined(records) if join or len({record.id for record in records}) > 1 else records[0]


def table_names(grids: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return sweep → the names of its tables.

    Args:
        grids: of `kdx.store.reading.grids`.
    """
    # If a grid asks for no table, its default table has the name of the sweep.
    return {
        name: [str(table["name"]) for table in grid.get("tables") or [{"name": name}]] for name, grid in grids.items()
    }


class LoadedReport:
    """The records of a report, read within one transaction; its tables are built after it."""

    def __init__(self, database: Database, made_by: MadeBy, context: Context) -> None:
        self.made_by = made_by
        self._db = context.db
        record = load_together(database, made_by.sweeps, context, join=made_by.tables is not None)
        self.record = with_tables_of(Path(made_by.tables), record) if made_by.tables else record
        runs = [run.id for run in selected_runs(self.record).values()] if made_by.paired_ar else []
        self._texts = outputs_of(database, runs, TEXTS) if runs else {}

    def tables(self, only: str | None = None) -> tuple[Table, ...]:
        """Return the tables; `only` the one of this name."""
        made_by, record = self.made_by, self.record
        paper = load_paper(made_by.against, [record]) if made_by.against else None
        randomise = Translations(record, self._texts, _references).randomise if made_by.paired_ar else None
        return tables(record, self._db, only=only, paper=paper, randomise=randomise)


@cache
def _references(data: "Data") -> Sequence[str]:
    """Return the references of a local corpus."""
    # late: it reads grids and corpora, which takes longer than all other imports, and only --paired-ar needs it
    from kdx.data.find_text import find_text

    text = find_text(data)
    return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]
