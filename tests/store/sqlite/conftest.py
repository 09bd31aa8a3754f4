"""What the tests of SQLite's own may use; `database` is a file here."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdx.store.database import Database, open_database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a sweep, made once, since each making runs the migrations."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    open_database(path, write=True, create=True).close()
    return path


@pytest.fixture
def database(path: Path, empty: Path) -> Iterator[Database]:
    shutil.copy(empty, path)
    with open_database(path, write=True) as opened:
        yield opened


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that every user may enter and write, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="kdx-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)
