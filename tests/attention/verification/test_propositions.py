"""What theory demands holds, and what breaks it is found out."""

import pytest
import torch

from kdx.attention.kernels.exponential import Exponential
from kdx.attention.positions.lookup import Lookup
from kdx.attention.verification import propositions
from kdx.attention.verification.propositions import PROPOSITIONS


@pytest.mark.parametrize("name", PROPOSITIONS)
def test_every_proposition_holds(name):
    checked = list(PROPOSITIONS[name]("cpu"))
    assert checked
    assert not [(variant, error) for variant, error in checked if not error <= propositions.TOLERANCE]


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
    assert errors["exponential, none, full"] > propositions.TOLERANCE
    assert errors["rbf, none, full"] <= propositions.TOLERANCE


def test_a_scheme_that_sees_where_it_is_is_found_out(monkeypatch):
    right = Lookup.log_weight

    def off(self, query, at_query, at_key):
        return right(self, query, at_query, at_key) + 0.01 * at_key.positions.double()

    monkeypatch.setattr(Lookup, "log_weight", off)
    assert dict(propositions.shift_invariance("cpu"))["lookup"] <= 1e-9  # a term of the row alone cancels
    monkeypatch.setattr(
        Lookup, "log_weight", lambda *a: right(*a) + 0.01 * (a[3].positions.double() * a[2].positions.double()[:, None])
    )
    assert dict(propositions.shift_invariance("cpu"))["lookup"] > propositions.TOLERANCE


def test_an_error_that_is_no_number_does_not_hold():
    assert not propositions.Finding("p", "v", float("nan")).holds
    assert propositions.Finding("p", "v", 0.0).holds
    assert torch.get_default_dtype() is torch.float32
