"""What is asked of Slurm."""

import pytest

from kdx.errors import KdxError
from kdx.slurm.asked import Asked


def test_each_wish_is_an_option_of_sbatch():
    asked = Asked(partition="gpu", gpus_per_node="a100:2", time="4:00:00", account="us", qos="high", more=("--mem=8G",))
    assert asked.flags == (
        "--partition=gpu",
        "--gpus-per-node=a100:2",
        "--time=4:00:00",
        "--account=us",
        "--qos=high",
        "--mem=8G",
    )
    assert Asked().flags == ()


@pytest.mark.parametrize("option", ["mem=8G", "", "--mem=8G\n#SBATCH --wrap=x", "--array=0-3", "--wrap", "--output=x"])
def test_what_is_no_option_or_is_set_by_kdx_is_refused(option):
    with pytest.raises(KdxError):
        Asked(more=(option,))
