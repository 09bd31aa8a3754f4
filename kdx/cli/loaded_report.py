"""Reads what the tables of a report need, and builds them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kdx.cli.context import Context
from kdx.cli.sweep_argument import load_together
from kdx.data.find_text import find_text
from kdx.grid.sections import Data
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.table.bleu_randomisation import Translations
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables
from kdx.store.database import Database
from kdx.store.reading import outputs_of
from kdx.vocabulary import Split

TEXTS = "test/translations"
"""The name of a run's output with its translations."""


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
def _references(data: Data) -> Sequence[str]:
    """Return the references of a local corpus."""
    text = find_text(data)
    return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]
