"""Files of runs: in a folder that KDX_FILES names, one for each database of any kind."""

from pathlib import Path

from kdx.run_files.files import files_beside
from kdx.store.database import database_at, open_database
from kdx.store.refusals import FILES


def test_each_database_has_a_folder_there(address: str, database, tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    assert files_beside(database.location) == tmp_path / "shared" / f"{database.id}.files"
    with open_database(address, write=False) as other:
        assert other.location == database.location


def test_home_is_understood_and_nothing_names_nothing(database, monkeypatch):
    monkeypatch.delenv(FILES, raising=False)
    default = database.location
    monkeypatch.setenv(FILES, "~/shared")
    assert database.location.parent == Path.home() / "shared"
    monkeypatch.setenv(FILES, "")
    assert database.location == default


def test_without_such_a_folder_they_lie_beside_a_file_or_among_the_data_of_the_user(database, tmp_path, monkeypatch):
    monkeypatch.delenv(FILES, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    files = files_beside(database.location)
    if database.file is None:
        assert files == tmp_path / "kdx" / "runs" / f"{database.id}.files"
    else:
        assert files == database.file.with_suffix(".files")


def test_a_database_that_is_not_there_has_a_place_on_the_same_disk(nowhere: str, tmp_path, monkeypatch):
    monkeypatch.setenv(FILES, str(tmp_path / "shared"))
    assert database_at(nowhere).location.parent == tmp_path / "shared"
