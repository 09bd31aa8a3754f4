"""What the tests of SQLite alone may use; `database` is a file here."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.conftest import SqliteFiles


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    return SqliteFiles(tmp_path_factory.mktemp("store"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the database, which is there only for a test that takes `database`."""
    return tmp_path / "runs.db"


@pytest.fixture
def empty(databases: SqliteFiles) -> Path:
    """A database without a sweep, which must not be changed."""
    return databases.empty


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that every user may enter and write, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="kdx-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)
