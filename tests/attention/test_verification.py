"""Every component of an attention is held to one list of properties; one that is wrong misses them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kdx.attention.families import FAMILIES
from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import KernelFunction
from kdx.attention.kernels import KERNELS
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.positions.lookup import Lookup
from kdx.attention.verification import cases
from kdx.attention.verification.cases import AXES, build, checks, findings_of, held
from kdx.attention.verification.properties import PROPERTIES, draw
from kdx.components.find import find
from kdx.errors import ComponentError

RIGHT = "1 / (1 + squared_distance(query, key) / self.bandwidth**2)"


def missed(kind: type) -> set[str]:
    return {finding.check for finding in findings_of(kind, "cpu") if not finding.holds}


def assert_found(problem: str, missing: Callable[[], set[str]]) -> None:
    """A problem is a property that is missed, or what a component is refused for before any is checked."""
    try:
        problems = missing()
    except ComponentError as fault:
        problems = {fault.problem}
    assert any(problem in text for text in problems), problems


def missed_with(folder, kernel: str) -> set[str]:
    file = folder / "my_kernels.py"
    file.write_text(file.read_text().replace(RIGHT, kernel))
    return missed(find("kernel", "my_kernels.py:Cauchy", folder).load())


@pytest.mark.slow
def test_every_word_of_kdx_has_every_property():
    checked = [finding for check in checks("cpu").values() for finding in check()]
    assert [finding for finding in checked if not finding.holds] == []
    assert {finding.check for finding in checked} == {known.name for known in PROPERTIES}
    variants = ", ".join(finding.variant for finding in checked)
    for name in ("qk_norm l2", "kv_heads 1", "maps differential", "output_gate sigmoid"):
        assert name in variants
    assert set(AXES) == {"kernel", "position", "value", "filter", "normaliser", "encoding"}


def test_an_attention_of_several_components_is_checked_once_and_none_is_left_out(monkeypatch):
    met = []

    def meet(name, module, x, **_):
        met.append((x.size(1), *((path, type(part)) for path, part in module.named_modules())))
        return iter(())

    for name, stub in (("held", meet), ("_train_twice", lambda *_: None), ("rehearse", lambda *_, **__: None)):
        monkeypatch.setattr(cases, name, stub)
    kinds = [family[word] for family in FAMILIES if family.axis in AXES for word in family]
    assert [list(findings_of(kind, "cpu")) for kind in kinds] == [[]] * len(kinds)
    of_each_alone, met = met, []
    assert [list(check()) for name, check in checks("cpu").items() if name.split()[0] in AXES] == [[]] * len(kinds)
    assert len(met) == len(set(met)) < len(of_each_alone) and set(met) == set(of_each_alone)


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


@pytest.mark.parametrize(
    ("fact", "name"),
    [
        ("positive_semi_definite", "symmetric Gram matrices are positive semi-definite"),
        ("blind_to_query_norm", "the norm of the query is not seen"),
    ],
)
def test_what_a_class_says_of_its_kernel_and_is_not_so_is_found(fact, name):
    class Distance(KernelFunction):
        gives = "weight"

        def weight(self, query, key):
            return 1 + (query.sum(-1, keepdim=True) - key.sum(-1).unsqueeze(-2)).square()

    assert name not in missed(Distance)
    assert name in missed(type("Wrong", (Distance,), {fact: True}))


def test_a_scheme_that_sees_where_it_is_is_found(monkeypatch):
    right = Lookup.log_weight

    def missed_with(term) -> set[str]:
        def log_weight(self, query: Tensor, at_query, at_key) -> Tensor:
            added = term(at_query.positions, at_key.positions).to(query.dtype)
            return right(self, query, at_query, at_key) + 0.01 * added

        monkeypatch.setattr(Lookup, "log_weight", log_weight)
        module = build("cpu", {"positions": ("lookup",), "filter": "causal"})
        return {finding.check for finding in held("x", module, draw("cpu", 2, 9, 16), causal=True) if not finding.holds}

    assert missed_with(lambda query, key: key) == set()  # a shift adds a term of the row alone, which cancels
    assert missed_with(lambda query, key: query[:, None] * key) == {"relative schemes are shift-invariant"}


def test_a_right_kernel_holds(own_kernel):
    assert missed_with(own_kernel, RIGHT) == set()


@pytest.mark.slow
def test_a_difference_too_small_for_half_precision_misses(own_kernel):
    kernel = "1 + 1e4 * squared_distance(query, key) - 1e4 * squared_distance(query, key)"
    assert_found("half precision", lambda: missed_with(own_kernel, kernel))


BEGIN = """import math
import torch
from torch import nn
from kdx.attention.distances import pair_distances
from kdx.attention.interfaces import FilterFunction, PositionScheme
from kdx.attention.positions.alibi import ALiBi

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, numbers):
        return numbers * 1

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient

"""
LEARNED = """class Mine(PositionScheme):
    def __init__(self, settings, **options):
        super().__init__(settings, **options)
        self.rate = nn.Parameter(torch.full((settings.heads, 1, 1), 0.3))
        self.kept = None

    def log_weight(self, query, at_query, at_key):
        distance = pair_distances(at_query, at_key)
        {}
"""
ROTATED = """class Mine(PositionScheme):
    weighs = False

    def projected(self, projected, place):
        angle = (0.3 * {}).to(projected.dtype)[:, None]
        one, other = projected.chunk(2, -1)
        return torch.cat([one * angle.cos() - other * angle.sin(), one * angle.sin() + other * angle.cos()], -1)
"""
BY_PART = """
    def blockwise(self, query, at_query, at_key):
        return lambda query, asked, seen: self.log_weight(query, at_query.part(asked), at_key.part(seen)) * {}
"""
FILTERED = """class Mine(FilterFunction):
    reads_content = True

    def visible(self, query, key):
        return key <= query

    def chosen(self, log_weight, weight, visible):
        score = weight if log_weight is None else log_weight
        score = score if visible is None else score.masked_fill(~visible, -torch.inf)
        return score >= score.amax(-1, keepdim=True) - {}
"""
ONLY_PAST = """class Mine(PositionScheme):
    past_only = True

    def log_weight(self, query, at_query, at_key):
        distance = pair_distances(at_query, at_key)
        return torch.where(distance > 0, 0.1 * distance.size(-1), 0.2 * distance)
"""


def missed_by(folder, axis: str, source: str) -> set[str]:
    (folder / "mine.py").write_text(BEGIN + source)
    return missed(find(axis, "mine.py:Mine", folder).load())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axis", "source"),
    [
        ("position", LEARNED.format("return self.rate * -distance.abs()")),
        ("position", ROTATED.format("place.positions")),
        ("position", "class Mine(ALiBi):\n    pass\n"),
        ("position", ONLY_PAST),
        *(("filter", FILTERED.format(margin)) for margin in (1, 0.3, 0.2)),
    ],
)
def test_a_right_scheme_or_filter_holds(tmp_path, components, axis, source):
    assert missed_by(tmp_path, axis, source) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "proposition"),
    [
        (LEARNED.format("return Twice.apply(self.rate) * distance"), "gradients are those of differences"),
        (
            LEARNED.format("return self.rate * distance") + BY_PART.format(2),
            "is another thing than what it gives for the formula",
        ),
        (LEARNED.format("return (300.0 - distance.abs()).sqrt()"), "both paths agree on long rows"),
        (LEARNED.format("return (query[..., :1] * 0 + 1000.3) * distance - 1000.1 * distance"), "half precision"),
        (ROTATED.format("torch.arange(len(place.positions))"), "not by its index"),
    ],
)
def test_a_wrong_scheme_misses(tmp_path, components, source, proposition):
    assert_found(proposition, lambda: missed_by(tmp_path, "position", source))


def test_what_a_scheme_keeps_of_one_pass_for_the_next_has_no_gradient(tmp_path, components):
    new = "self.kept is None or self.kept.shape[1:] != distance.shape"
    kept = f"self.kept = self.rate * distance if {new} else self.kept\n        return self.kept"
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        missed_by(tmp_path, "position", LEARNED.format(kept))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("torch.set_num_threads(torch.get_num_threads() + 1)\n        return self.rate * distance", "when it computes"),
        ("self.training and torch.manual_seed(1)\n        return self.rate * distance", "random numbers in training"),
    ],
)
def test_what_a_scheme_keeps_or_changes_is_told(tmp_path, components, change, problem):
    threads = torch.get_num_threads()
    try:
        with pytest.raises(ComponentError, match=problem):
            missed_by(tmp_path, "position", LEARNED.format(change))
    finally:
        torch.set_num_threads(threads)


def test_of_a_filter_that_chooses_by_weights_no_distance_in_half_precision_is_shown():
    """It may choose another key there, so that none would say anything."""
    checked = list(findings_of(FILTERS["top-k"], "cpu"))
    assert checked and [finding for finding in checked if not finding.holds] == []
    assert "half precision" not in {finding.check for finding in checked}


def test_a_normaliser_is_checked_with_every_kernel_that_it_is_one_of():
    variants = {finding.variant for finding in findings_of(NORMALISERS["sigmoid"], "cpu")}
    assert "Sigmoid, exponential, full" in variants and "Sigmoid, elu, full" not in variants
