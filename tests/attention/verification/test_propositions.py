"""What theory demands holds, and what breaks it is found out."""

import itertools

import pytest
import torch

from kdx.attention import smoother
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.positions.lookup import Lookup
from kdx.attention.verification import propositions
from kdx.attention.verification.propositions import PROPOSITIONS
from kdx.attention.verification.rounding import ROUNDINGS
from kdx.errors import KdxError


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if "long rows" in name else []) for name in PROPOSITIONS]
)
def test_every_proposition_holds(name):
    checked = [propositions.PropositionError(name, *one) for one in PROPOSITIONS[name]("cpu")]
    assert checked
    assert not [one for one in checked if not one.holds]


def test_a_fast_path_that_is_off_is_found_out(monkeypatch):
    right = Exponential.dot_product
    monkeypatch.setattr(
        Exponential, "dot_product", lambda self, q, k: (1.001 * right(self, q, k)[0], right(self, q, k)[1])
    )
    errors = {}
    for variant, error in propositions.both_paths_agree("cpu"):
        errors[variant] = error
        if variant == "rbf, none, full":
            break
    assert errors["exponential, none, full"] > ROUNDINGS
    assert errors["rbf, none, full"] <= ROUNDINGS


def _first_long(device):
    found = itertools.islice(propositions.both_paths_agree_on_long_rows(device), 6)
    return {variant: error for variant, error, _ in found}


def test_a_block_that_is_off_is_found_out_in_both_formats(monkeypatch):
    right = Lookup.by_part

    def off(self, *places):
        part = right(self, *places)
        return lambda query, asked, seen: part(query, asked, seen) + 1e-3 * (asked.start > 0) * query[..., :1]

    monkeypatch.setattr(Lookup, "by_part", off)
    assert all(error <= ROUNDINGS for error in _first_long("cpu").values())  # a term of the row alone cancels
    monkeypatch.setattr(
        Lookup,
        "by_part",
        lambda self, *places: (
            lambda query, asked, seen: right(self, *places)(query, asked, seen) * (1.01 if asked.start else 1.0)
        ),
    )
    found = _first_long("cpu")
    missed = {variant for variant, error in found.items() if not error <= ROUNDINGS}
    assert missed == {variant for variant in found if "lookup" in variant} and len(missed) == 2


def test_a_fast_path_that_gives_no_number_is_found_out(monkeypatch):
    right = smoother.fused
    monkeypatch.setattr(smoother, "fused", lambda *given, **more: right(*given, **more) * float("nan"))
    for name in (
        "permutation equivariance without a mask",
        "none with a mask",
        "two causal layers are not",
        "relative schemes are shift-invariant",
        "memory equals one long pass",
        "cached decoding equals teacher forcing",
        "padding changes nothing",
    ):
        found = [propositions.PropositionError(name, *one) for one in itertools.islice(PROPOSITIONS[name]("cpu"), 4)]
        assert not all(one.holds for one in found), name


def test_a_symmetric_kernel_with_two_projections_is_found_out(monkeypatch):
    right = propositions._attention
    monkeypatch.setattr(
        propositions, "_attention", lambda device, **choices: right(device, **(choices | {"symmetry": "asymmetric"}))
    )
    assert all(error > ROUNDINGS for _, error in propositions.symmetric_gram_matrices("cpu"))


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KdxError, match="--device cuda: "):
        next(propositions.findings("cuda"))


def test_a_scheme_that_sees_where_it_is_is_found_out(monkeypatch):
    right = Lookup.log_weight

    def off(self, query, at_query, at_key):
        return right(self, query, at_query, at_key) + 0.01 * at_key.positions.double()

    monkeypatch.setattr(Lookup, "log_weight", off)
    assert dict(propositions.shift_invariance("cpu"))["lookup"] <= ROUNDINGS  # a term of the row alone cancels
    monkeypatch.setattr(
        Lookup, "log_weight", lambda *a: right(*a) + 0.01 * (a[3].positions.double() * a[2].positions.double()[:, None])
    )
    assert dict(propositions.shift_invariance("cpu"))["lookup"] > ROUNDINGS


def test_an_error_that_is_no_number_does_not_hold():
    assert not propositions.PropositionError("p", "v", float("nan")).holds
    assert propositions.PropositionError("p", "v", 0.0).holds
    assert torch.get_default_dtype() is torch.float32
