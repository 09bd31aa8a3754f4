"""What the messages on databases of every kind have in common."""

import os

import pytest

from kdx.store.refusals import set_password_apart, without_password


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


@pytest.mark.parametrize(
    ("address", "shown", "password"),
    [
        ("postgresql+psycopg://me:p%40ss@host:1/r?a=b", "postgresql+psycopg://me@host:1/r?a=b", "p@ss"),
        ("postgresql://me:a:b@host/r", "postgresql://me@host/r", "a:b"),
        ("postgresql://me@host/r", "postgresql://me@host/r", None),
        ("postgresql://host/r", "postgresql://host/r", None),
        ("runs:a@b.db", "runs:a@b.db", None),
    ],
)
def test_a_password_is_set_apart(monkeypatch, address: str, shown: str, password: str | None):
    monkeypatch.setenv("PGPASSWORD", "before")
    assert set_password_apart(address) == shown
    assert os.environ["PGPASSWORD"] == (password or "before")
