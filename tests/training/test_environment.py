"""The record of what a run ran on."""

import json
import subprocess
from importlib.metadata import version

import torch

import kdx
from kdx.grid.sections import Training
from kdx.training.environment import commit, environment, peak_memory
from kdx.training.resume import changes, conditions
from kdx.vocabulary import Arithmetic, Optimiser


def test_the_environment_is_plain_data_and_follows_the_thread_count():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = environment(Training())
        torch.set_num_threads(2)
        two = environment(Training())
    finally:
        torch.set_num_threads(threads)
    assert json.loads(json.dumps(one)) == one
    assert one | {"threads": 2, "canary": two["canary"]} == two
    assert one["torch"] == torch.__version__ and one["kdx"] == kdx.__version__


def test_what_an_optimiser_brings_along_is_told_of_its_runs_only():
    told = {word: environment(Training(optimiser=word)) for word in Optimiser}
    assert told["lion"] == told["adamw"] | {"lion_pytorch": version("lion-pytorch")}
    # Muon multiplies in bf16.
    assert told["muon"] == environment(Training(precision="bf16")) != told["adamw"]


def test_fast_arithmetic_is_a_condition_and_exact_arithmetic_goes_without_saying():
    """A checkpoint of before there was a choice names none, and was exact."""
    exact, fast = (environment(Training(arithmetic=word)) for word in Arithmetic)
    assert fast == exact | {"arithmetic": "fast"} and exact == environment(Training())
    assert changes(conditions(exact, "", {}), conditions(exact, "", {})) is None
    assert changes(conditions(fast, "", {}), conditions(exact, "", {})) == "arithmetic fast → not recorded"


def test_the_commit_of_a_checkout_is_told_and_whether_files_differ(tmp_path):
    def git(*words: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *author, *words], check=True, capture_output=True, text=True
        ).stdout

    assert commit.__wrapped__(tmp_path) is None
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    head = git("rev-parse", "HEAD").strip()
    assert commit.__wrapped__(tmp_path) == head
    (tmp_path / "file").write_text("two")
    assert commit.__wrapped__(tmp_path) == f"{head}-dirty"
    assert "commit" in environment(Training())


def test_memory_that_was_held_counts_when_it_is_given_back():
    before = peak_memory()
    held = torch.ones(2**28 // 4)
    del held
    assert before > 2**20
    if not torch.cuda.is_initialized():
        assert peak_memory() >= max(before, 2**28)
