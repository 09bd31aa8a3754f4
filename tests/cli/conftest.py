"""Makes what these tests share importable, and kdx something to type."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def terminal(tmp_path, data_home):
    """Somebody in an empty folder."""
    from terminal import Terminal

    return Terminal(tmp_path, data_home)
