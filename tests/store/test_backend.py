"""What is told of a backend."""

import pytest

from kdx.store.backend import without_password


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("runs.db", "runs.db"),
        ("postgresql://me@host/runs", "postgresql://me@host/runs"),
        ("postgresql://me:a:b@c@host/runs", "postgresql://me:***@host/runs"),
        ("nonsense://me:secret@", "nonsense://me:***@"),
    ],
)
def test_a_password_is_not_shown(address: str, shown: str):
    assert without_password(address) == shown
