"""What is asked of Slurm."""

import pytest

from kdx.errors import KdxError
from kdx.slurm.job_options import JobOptions


def test_each_wish_is_an_option_of_sbatch():
    asked = JobOptions(partition="gpu", gpus_per_node="a100:2", time="4:00:00", more=("--mem=8G",))
    assert asked.flags == (
        "--partition=gpu",
        "--gpus-per-node=a100:2",
        "--time=4:00:00",
        "--mem=8G",
    )
    assert JobOptions().flags == ()


@pytest.mark.parametrize("option", ["mem=8G", "", "--array=0-3", "--array 0-3", "--wrap", "--output=x"])
def test_what_is_no_option_or_is_set_by_kdx_is_refused(option):
    with pytest.raises(KdxError):
        JobOptions(more=(option,))


def test_an_option_of_two_words_is_two_arguments():
    assert JobOptions(more=("--mem 8G", "--comment=it's mine", "--exclusive")).flags == (
        "--mem",
        "8G",
        "--comment=it's mine",
        "--exclusive",
    )


@pytest.mark.parametrize(
    ("time", "leave", "allowed"),
    [
        ("4", 120, True),
        ("3", 120, False),
        ("1", 40, False),
        ("0:03:59", 120, False),
        ("1-0", 86_281, False),
        ("0", 120, True),
        ("UNLIMITED", 120, True),
        ("2-12:30", 120, True),
        ("4:30", 120, True),
    ],
)
def test_a_job_that_slurm_would_signal_before_its_runs_begin_is_refused(time, leave, allowed):
    if allowed:
        JobOptions(time=time, leave=leave)
    else:
        with pytest.raises(KdxError, match="before its runs have done anything"):
            JobOptions(time=time, leave=leave)
