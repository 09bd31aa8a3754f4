"""`kdx verify` tells the largest errors, and by its exit code whether all is well."""

import json

import pytest
import typer

from kdx.attention.verification import propositions
from kdx.cli.verify import Device, verify


@pytest.fixture
def two_propositions(monkeypatch):
    """One that holds and one that does not, in place of all."""
    kept = {
        "a square is no root": lambda device: iter([("exponential", 1.5), ("rbf", 50.0)]),
        "one is one": lambda device: iter([("exponential", 0.0)]),
    }
    monkeypatch.setattr(propositions, "PROPOSITIONS", kept)


def test_a_miss_is_named_and_gives_exit_code_5(two_propositions, capsys):
    with pytest.raises(typer.Exit) as end:
        verify(None, Device.CPU)
    assert end.value.exit_code == 5
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "proposition         variants  largest error in roundings",
        "a square is no root        2  50",
        "  MISSED by rbf: 50",
        "one is one                 1  0",
    ]
    assert captured.err == "0 comparisons with vectors, 3 checks of propositions: 1 missed\n"


def test_programs_get_every_check(two_propositions, capsys):
    with pytest.raises(typer.Exit):
        verify(None, Device.CPU, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [(row["variant"], row["check"], row["holds"]) for row in rows] == [
        ("exponential", "a square is no root", True),
        ("rbf", "a square is no root", False),
        ("exponential", "one is one", True),
    ]


def test_vectors_are_summed_up_a_line_a_variant(monkeypatch, shared, capsys):
    monkeypatch.setattr(propositions, "PROPOSITIONS", {})
    verify(str(shared / "golden" / "attention.npz"), Device.CPU)
    captured = capsys.readouterr()
    header, *rows = captured.out.partition("\nproposition")[0].strip().splitlines()
    assert header.split()[-8:] == ["literal", "float64", "fused", "float64", "literal", "float32", "fused", "float32"]
    assert any(row.startswith("linear, symmetric, relative, with-position ") for row in rows)
    assert "MISSED" not in captured.out and captured.err.startswith("728 comparisons with vectors, 0 checks")
