"""The tables of a report, made as its options say: read within one transaction, built after it."""

from collections.abc import Sequence
from pathlib import Path

from kdx.cli.sweep_argument import load_together
from kdx.cli.translations import TEXTS, translations_of
from kdx.grid.plan import Plan
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables
from kdx.store.database import Database
from kdx.store.reading import outputs_of
from kdx.store.records import SweepRecord


class MadeTables:
    """The records of a report, of which its tables are built."""

    def __init__(self, database: Database, made_by: MadeBy, plans: Sequence[Plan | None], db: str) -> None:
        self.made_by = made_by
        self.record: SweepRecord = load_together(database, made_by.sweeps, plans, db, join=made_by.tables is not None)
        runs = [run.id for run in selected_runs(self.record).values()] if made_by.paired_ar else []
        self._translations = outputs_of(database, runs, TEXTS) if runs else {}
        self._db = db

    def tables(self) -> tuple[Table, ...]:
        """The tables, or the one that is named.

        Raises:
            KdxError: see `kdx.report.tables.tables`, `load_paper` and `with_tables_of`.
        """
        made_by, record = self.made_by, self.record
        return tables(
            with_tables_of(Path(made_by.tables), record) if made_by.tables else record,
            self._db,
            only=made_by.table,
            paper=load_paper(made_by.against, [record]) if made_by.against else None,
            randomise=translations_of(record, self._translations).randomise if made_by.paired_ar else None,
        )
