"""The tables of a report are those that its options ask for."""

from pathlib import Path

from looked_after import DB, planned

from kdx.cli.made_tables import MadeTables
from kdx.report.made_by import MadeBy
from kdx.store.database import open_database

TABLES = "tables:\n- {name: one, rows: kernel}\n- {name: two, rows: kernel, columns: sweep}\n"


def test_options_choose_the_sweeps_the_tables_and_the_one_of_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned(1)
    planned(1, name="newer")
    Path("two.yaml").write_text(TABLES)

    def names_of(**options: str) -> list[str]:
        sweeps = ("tiny", "newer") if options else ("tiny",)
        with open_database(DB, write=False) as database, database.read():
            report = MadeTables(database, MadeBy(sweeps, **options), [None] * len(sweeps), DB)
        return [table.layout.name for table in report.tables()]

    assert names_of() == ["tiny"]
    assert names_of(tables="two.yaml") == ["one", "two"]
    assert names_of(tables="two.yaml", table="two") == ["two"]
