"""Files of runs whose database is on a server: a folder for each database, on this machine or a shared one."""

from kdx.run_files.files import files_beside
from kdx.store.database import open_database
from kdx.store.postgresql.files import FILES


def test_files_lie_in_a_folder_of_the_database(address: str, database, tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    assert files_beside(database.location) == tmp_path / "shared" / f"{database.id}.files"
    with open_database(address, write=False) as other:
        assert other.location == database.location


def test_without_a_folder_they_lie_among_the_data_of_the_user(database, tmp_path, monkeypatch):
    monkeypatch.delenv(FILES, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert files_beside(database.location) == tmp_path / "kdx" / "runs" / f"{database.id}.files"
