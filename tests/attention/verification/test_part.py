"""A part of one's own is held to what every part must fulfil; one that is wrong misses it."""

import pytest

from kdx.attention.verification.part import AXES, findings_of
from kdx.own_parts.read import find
from kdx.own_parts.registry import add

RIGHT = "1 / (1 + squared_distance(query, key) / self.bandwidth**2)"


def missed(folder, kernel: str) -> set[str]:
    file = folder / "my_kernels.py"
    file.write_text(file.read_text().replace(RIGHT, kernel))
    add(find("kernel", "my_kernels.py:Cauchy", folder))
    return {one.proposition for one in findings_of("kernel", "my_kernels.py:Cauchy", "cpu") if not one.holds}


def test_a_right_kernel_holds(own_kernel):
    assert missed(own_kernel, RIGHT) == set()


@pytest.mark.parametrize(
    ("kernel", "proposition"),
    [
        # It looks at where tokens stand in the call, not at the tokens.
        (
            "torch.arange(key.size(-2)).double().flip(0).expand(*query.shape[:-1], -1) + 1",
            "cached decoding equals teacher forcing",
        ),
        # Its gradient is not its own.
        (RIGHT.replace("query,", "query.detach(),"), "gradients are those of differences"),
        # Too small for half precision to tell apart.
        ("1 + 1e4 * squared_distance(query, key) - 1e4 * squared_distance(query, key)", "half precision"),
    ],
)
def test_a_wrong_kernel_misses(own_kernel, kernel, proposition):
    file = own_kernel / "my_kernels.py"
    file.write_text("import torch\n" + file.read_text())
    assert proposition in missed(own_kernel, kernel)


@pytest.mark.parametrize(
    ("axis", "word"),
    [
        ("kernel", "linear"),
        ("position", "relative"),
        ("value", "table"),
        ("filter", "strided"),
        ("normaliser", "length"),
        ("encoding", "learned"),
    ],
)
def test_the_words_of_kdx_hold_on_every_axis(axis, word):
    assert axis in AXES
    found = list(findings_of(axis, word, "cpu"))
    assert [one for one in found if not one.holds] == []
    assert {"both paths agree", "both paths agree on long rows", "half precision"} <= {one.proposition for one in found}
