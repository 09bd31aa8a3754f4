"""Slurm's programs, and what they say where something is amiss."""

import os

import pytest

from kdx.errors import KdxError
from kdx.slurm import cluster as slurm


def test_a_job_is_known_by_the_number_that_sbatch_says(played):
    folder = played(sbatch="cat > /dev/null; echo '4711;otherwhere'")
    assert slurm.submit(["sbatch", "--parsable"], os.environ) == 4711
    assert (folder / "sbatch.words").read_text() == "--parsable\n"


@pytest.mark.parametrize("answer", ["", "Submitted", "12 13"])
def test_an_answer_without_a_number_is_told(played, answer):
    played(sbatch=f"cat > /dev/null; echo '{answer}'")
    with pytest.raises(KdxError, match="which names no job"):
        slurm.submit(["sbatch", "--parsable"], os.environ)


def test_the_queue_has_only_the_jobs_that_were_asked_for_and_any_state_as_it_is(played):
    lines = ("3|0|8|RUNNING|n1|None|/a", "3|2-7|3|PENDING||Resources|/a", "4|0|4|RUNNING|n2|None|/a", "odd")
    played(squeue="; ".join(f"echo '{line}'" for line in lines))
    assert slurm.queue([3, 5]) == (
        slurm.Job(3, "0", "8", "RUNNING", "n1", "None", "/a"),
        slurm.Job(3, "2-7", "3", "PENDING", "", "Resources", "/a"),
    )
    assert slurm.queue([]) == ()


def test_a_program_that_is_not_there_is_one_message(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KdxError, match="there is no program `sbatch` here") as caught:
        slurm.submit(["sbatch"], {"PATH": "/nowhere"})
    assert "submits jobs to Slurm" in str(caught.value.hint)
    assert slurm.partitions() == ()


def test_a_refusal_has_slurms_words_and_for_a_partition_those_that_there_are(played):
    played(
        sbatch="echo 'sbatch: error: invalid partition specified: x' >&2; exit 1", sinfo="echo gpu; echo cpu; echo gpu"
    )
    with pytest.raises(KdxError, match="sbatch refuses: sbatch: error: invalid partition specified: x") as caught:
        slurm.submit(["sbatch", "--parsable"], os.environ)
    assert caught.value.allowed == "gpu, cpu" or caught.value.allowed == ("gpu", "cpu")
