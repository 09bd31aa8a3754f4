"""What the messages on databases of every kind have in common."""

import pytest

from kdx.store.refusals import without_password


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("runs.db", "runs.db"),
        ("postgresql://me@host/runs", "postgresql://me@host/runs"),
        ("postgresql://me:a:b@c@host/runs", "postgresql://me:***@host/runs"),
        ("nonsense://me:secret@", "nonsense://me:***@"),
        ("postgresql://h/r?a=b&sslpassword=x&c=d", "postgresql://h/r?a=b&sslpassword=***&c=d"),
    ],
)
def test_a_password_is_not_shown(address: str, shown: str):
    assert without_password(address) == shown
