"""A database of its own for each test, and the helpers of these tests, importable."""

import socket
import sys
from pathlib import Path

import pytest

from kdx.store.database import open_database

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        yield opened


@pytest.fixture
def channels():
    """The worker's end of the socket and the sweep's."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        yield here, there
