"""Runs of cells whose layers differ: in every task, and resumed with the same bits."""

import pytest
from runs import STEPS, cell, run, same_bits
from test_determinism import TEXT
from test_examples import (
    ARMS,
    few_examples,  # noqa: F401  # it is for every test of this file
)
from test_examples import cell as example_cell

from kdx.grid.spec import CellSpec


def three_steps(spec: CellSpec, **choices) -> CellSpec:
    plain = spec.model_dump(mode="json", by_alias=True)
    training = plain["training"] | {"steps": 3, "warmup": 1, "validate_every": 3}
    return CellSpec.model_validate({**plain, "training": training, **choices})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXT, *ARMS])
def test_layers_that_all_choose_alike_train_as_if_the_cell_had_chosen(name, home, tmp_path):
    spec = TEXT[name] if name in TEXT else example_cell(name)
    choice = {"kernel": "student-t", "qk_norm": "rms"}
    whole = run(three_steps(spec, **choice), tmp_path / "whole", home)
    layered = run(three_steps(spec, layers={"every 1": choice}), tmp_path / "layers", home)
    assert same_bits(layered.weights, whole.weights)
    other = run(three_steps(spec), tmp_path / "other", home)
    assert not same_bits(other.weights, whole.weights)


HYBRIDS = {
    "translation": {
        "first": {"position": ["direct-sum", "product"], "inject": "per-layer", "kv_heads": 1},
        "encoder last": {"kernel": "rbf", "filter": {"encoder-self": "causal"}},
        "decoder last": {"maps": "differential", "position": "none"},
    },
    "prediction": {
        "1": {"position": "relative", "xl_bias": "shared"},
        "2": {"filter": {"decoder-self": "window"}, "left": 3, "position": "none"},
        "every 3": {"position": "relative", "xl_bias": "shared", "kernel": "cosine", "output_gate": "sigmoid"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("task", HYBRIDS)
def test_a_hybrid_resumes_with_the_same_bits(task, home, tmp_path):
    depths = {"encoder_layers": 2 if task == "translation" else 0, "decoder_layers": 3}
    memory = {} if task == "translation" else {"memory": 8}
    spec = cell(task, model=depths, axes={"position": "none", "layers": HYBRIDS[task], **memory})
    whole = run(spec, tmp_path / "whole", home)
    assert run(spec, tmp_path / "part", home, stop_after=STEPS // 2).outcome is None
    resumed = run(spec, tmp_path / "part", home)
    assert same_bits(resumed.weights, whole.weights)
