"""`kdx explain` explains keys and values in the width of the terminal."""

import json

import pytest
from looked_after import refused, typed


def explain(*arguments: str, width: int = 80) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        return typed("explain", *arguments).stdout


def test_a_value():
    assert explain("rbf") == (
        "rbf (kernel)\n"
        "  Radial basis function\n"
        "  formula: k(q, k) = exp(-|q - k|² / T√D)\n"
        "  source: Tsai et al. 2019, Table 2\n"
        "  temperature: T; the logarithm of the weight is divided by T√D. learned: one\n"
        "    for each head, starting at 1 (Kundu et al. 2026). Allowed: a number above 0,\n"
        "    or learned; default: 1.0.\n"
        "  example:\n"
        "    kernel: rbf\n"
        "    temperature: 1.0\n"
    )


def test_a_key():
    assert explain("model.embeddings") == (
        "model.embeddings (key)\n"
        "  Which embedding matrices are one. Only translation has three: shared becomes\n"
        "  tied for prediction, separate elsewhere.\n"
        "  allowed: one of these values\n"
        "  default: shared\n"
        "    shared    All three matrices are one\n"
        "    tied      The decoder's input and output are one\n"
        "    separate  Three separate matrices\n"
        "  example:\n"
        "    model: {embeddings: shared}\n"
    )


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", [[], ["kernel"], ["none"], ["training"], ["data.corpus"], ["axes"]])
def test_no_line_of_prose_is_wider_than_the_terminal(name, width):
    prose = [line for line in explain(*name, width=width).splitlines() if ":" not in line and "{" not in line]
    assert prose and max(map(len, prose)) <= width


def test_the_keys_are_one_screen():
    lines = explain().splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("a grid") and any(line.startswith("training:") for line in lines)


def test_as_json_for_programs():
    (rbf,) = json.loads(explain("rbf", "--json"))
    assert (rbf["kind"], rbf["keys"], rbf["options"][0]["name"]) == ("value", ["kernel"], "temperature")
    (key,) = json.loads(explain("training.steps", "--json"))
    assert (key["kind"], key["default"]) == ("key", "1000")
    assert json.loads(explain("--json"))["training"]["training.steps"] == "Optimiser steps of a run."


def test_what_is_not_known_is_refused():
    assert refused("explain", "kernl").hint == "did you mean `kernel`?"
