"""What every test may use."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and golden vectors beside the checkout (KDX_SHARED); absent, the test is skipped.

    In CI the folder must be there, so its absence fails.
    """
    folder = Path(os.environ.get("KDX_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        reason = f"no corpora and golden vectors at {folder}; set KDX_SHARED"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture
def data_home(tmp_path_factory, monkeypatch) -> Path:
    """A folder for prepared and cached corpora, shared by the tests of one process."""
    home = tmp_path_factory.getbasetemp() / "data-home"
    monkeypatch.setenv("KDX_DATA", str(home))
    return home
