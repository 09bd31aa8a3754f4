"""Every choice of attention with every task and norm: ten steps, stopped at five, end with the bits of one pass."""

from typing import Any

import pytest
import test_examples
from pydantic import ValidationError
from runs import CORPUS, TASKS, assert_same_end, cell, rows_after, run, save_every_step
from test_examples import ARMS, few_examples  # noqa: F401  # it is for every test of this file

from kdx.grid.spec import CellSpec
from kdx.vocabulary import Norm

CHOICES: tuple[dict[str, Any], ...] = (
    {"position": "pope"},
    {"position": "grape-multiplicative"},
    {"position": "grape-additive", "placement": "decoder-self"},
    {"position": "path", "placement": "decoder-self"},
    {"position": "rotary", "value": "rotary"},
    {"value_projection": "keys"},
    {"symmetry": "symmetric", "value_projection": "keys"},
    {"projection": "none"},
    {"kernel": "rbf", "temperature": "learned", "projection": "none", "value_projection": "keys"},
    {"kernel": "exponential", "temperature": "learned"},
    {"kernel": "polynomial", "degree": 4},
    {"smoother": "local-linear"},
    {"normaliser": "scalable-softmax"},
    {"normaliser": "softpick"},
    {"normaliser": "stick-breaking"},
    {"layers": {"decoder last": {"kernel": "rbf"}}},
    {"layers": {"encoder last": {"qk_norm": "rms"}}},
)


def made(arm: str, choice: dict[str, Any], norm: Norm) -> CellSpec | None:
    """The cell; None if the task cannot have the choice."""
    base = cell(arm, select=None) if arm in TASKS else test_examples.cell(arm)
    plain = base.model_dump(mode="json", by_alias=True)
    training = plain["training"] | {"steps": 10, "validate_every": 5, "decay": None}
    given = {key: value for key, value in plain.items() if key not in ("layers", "placement")}
    try:
        return CellSpec.model_validate(given | {"norm": norm, "training": training} | choice)
    except ValidationError:
        return None


@pytest.mark.long
@pytest.mark.parametrize("arm", [*CORPUS, *ARMS])
def test_every_choice_resumes_bit_by_bit_in_every_task(arm, home, tmp_path, monkeypatch, figure):
    trained, refused, diverged = 0, 0, 0
    for number, (choice, norm) in enumerate((choice, norm) for choice in CHOICES for norm in Norm):
        spec = made(arm, choice, norm)
        if spec is None:
            refused += 1
            continue
        with monkeypatch.context() as patch:
            save_every_step(patch, keep_all=True)
            whole = run(spec, tmp_path / f"{number}", home)
        if whole.outcome.diverged:  # a product of modalities to the fourth power leaves the range of float32
            diverged += 1
            continue
        whole.left_at(5, tmp_path / f"{number} again")
        again = run(spec, tmp_path / f"{number} again", home)
        assert again.rows == rows_after(whole, 5), (choice, norm)
        assert_same_end(again, whole)
        trained += 1
    assert trained > refused and diverged <= 2
    figure(f"{arm}: {trained} cells resumed at five of ten steps, identical; {refused} refused, {diverged} diverged")
