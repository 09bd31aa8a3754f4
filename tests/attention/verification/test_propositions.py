"""What theory demands of the words of kdx holds, and what breaks it is found."""

import pytest
import torch
from torch import Tensor

from kdx.attention import smoother
from kdx.attention.kernels import KERNELS
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.positions import POSITIONS
from kdx.attention.positions.lookup import Lookup
from kdx.attention.verification import propositions
from kdx.attention.verification.properties import AXES, draw, findings_of, held, made
from kdx.attention.verification.propositions import PROPOSITIONS
from kdx.attention.verification.rounding import ROUNDINGS


@pytest.mark.slow
def test_every_word_of_kdx_holds_and_every_proposition_on_them():
    found = list(propositions.findings("cpu"))
    assert [one for one in found if not one.holds] == []
    checks = {one.check for one in found}
    assert {"both paths agree", "both paths agree on long rows", "half precision", *PROPOSITIONS} <= checks
    variants = ", ".join(one.variant for one in found)
    for name in ("qk_norm l2", "kv_heads 1", "maps differential", "output_gate sigmoid"):
        assert name in variants
    assert set(AXES) == {"kernel", "position", "value", "filter", "normaliser", "encoding"}


def missed(kind: type) -> set[str]:
    return {one.check for one in findings_of(kind, "cpu") if not one.holds}


def test_a_fast_path_that_is_off_is_found(monkeypatch):
    right = Exponential.dot_product
    monkeypatch.setattr(
        Exponential, "dot_product", lambda self, q, k: (1.001 * right(self, q, k)[0], right(self, q, k)[1])
    )
    assert "both paths agree" in missed(KERNELS["exponential"])
    assert missed(KERNELS["rbf"]) == set()


def test_a_block_that_is_off_is_found(monkeypatch):
    right = Lookup.blockwise

    def off_by(error):
        def blockwise(self, *places):
            part = right(self, *places)
            return lambda query, asked, seen: error(part(query, asked, seen), query, asked)

        monkeypatch.setattr(Lookup, "blockwise", blockwise)
        return missed(POSITIONS["lookup"])

    assert off_by(lambda factor, query, asked: factor + 1e-3 * (asked.start > 0) * query[..., :1]) == set()
    assert "both paths agree on long rows" in off_by(lambda factor, query, asked: factor * (1.01 if asked.start else 1))


def test_a_fast_path_that_gives_no_number_is_found(monkeypatch):
    right = smoother.fused
    monkeypatch.setattr(smoother, "fused", lambda *given, **more: right(*given, **more) * float("nan"))
    for name in (
        "permutation equivariance without a mask",
        "none with a mask",
        "two causal layers are not",
        "relative schemes are shift-invariant",
    ):
        assert any(not error <= ROUNDINGS for _, error in PROPOSITIONS[name]("cpu")), name
    module = made("cpu", {"filter": "causal"})
    held_of_it = {one.check: one.holds for one in held("x", module, draw("cpu", 2, 9, 16), causal=True)}
    for name in (
        "memory equals one long pass",
        "cached decoding equals teacher forcing",
        "padding changes nothing",
        "both paths agree",
    ):
        assert not held_of_it[name], name


def test_a_symmetric_kernel_with_two_projections_is_found(monkeypatch):
    right = propositions.made
    monkeypatch.setattr(
        propositions, "made", lambda device, choices: right(device, {**choices, "symmetry": "asymmetric"})
    )
    assert all(error > ROUNDINGS for _, error in propositions.symmetric_gram_matrices("cpu"))


def test_a_scheme_that_sees_where_it_is_is_found(monkeypatch):
    right = Lookup.log_weight

    def error_with(term) -> float:
        def log_weight(self, query: Tensor, at_query, at_key) -> Tensor:
            return right(self, query, at_query, at_key) + 0.01 * term(at_query.positions, at_key.positions)

        monkeypatch.setattr(Lookup, "log_weight", log_weight)
        return dict(propositions.shift_invariance("cpu"))["lookup"]

    assert error_with(lambda query, key: key.double()) <= ROUNDINGS  # a term of the row alone cancels
    assert error_with(lambda query, key: query.double()[:, None] * key) > ROUNDINGS
    assert torch.get_default_dtype() is torch.float32
