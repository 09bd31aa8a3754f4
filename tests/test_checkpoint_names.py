"""The name of a checkpoint file says what it holds; names that only look alike are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.checkpoint_names import CheckpointKind, CheckpointName, is_set_aside, set_aside_name

SHA = "ab" * 32
names = st.builds(
    CheckpointName,
    st.sampled_from(CheckpointKind),
    st.integers(0, 10**9 - 1),
    st.text("0123456789abcdef", min_size=64, max_size=64),
)


@given(names)
def test_a_name_says_what_it_was_made_of(name):
    assert CheckpointName.parse(str(name)) == name
    assert is_set_aside(set_aside_name(str(name))) and CheckpointName.parse(set_aside_name(str(name))) is None


def test_names_stay_as_files_of_runs_have_them():
    assert str(CheckpointName(CheckpointKind.STEP, 120, SHA)) == f"step-000000120.{SHA}.ckpt"
    assert set_aside_name(f"step-000000120.{SHA}.ckpt") == f"step-000000120.{SHA}.corrupt"
    assert [*CheckpointKind] == ["step", "weights", "best", "average", "shared"]


@pytest.mark.parametrize(
    "name",
    ["", "log.txt", f"other-000000120.{SHA}.ckpt", f"step-120.{SHA}.ckpt", f"step-000000120.{SHA}.corrupt",
     f"step-000000120.{SHA}.ckpt\n", f"step-000000120.{SHA.upper()}.ckpt", "step-000000120.ckpt"],
)  # fmt: skip
def test_another_name_is_no_checkpoints(name):
    assert CheckpointName.parse(name) is None
