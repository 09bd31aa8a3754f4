"""Seeds are functions of what they are for."""

import subprocess
import sys

import torch

from kdx.training.determinism import reseed, seed_of


def test_a_seed_is_the_same_in_every_process():
    script = "from kdx.training.determinism import seed_of; print(seed_of(3, 'train', 17))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == seed_of(3, "train", 17)


def test_seeds_of_neighbouring_steps_and_purposes_differ():
    seeds = {seed_of(seed, use, step) for seed in range(3) for use in ("train", "valid") for step in range(100)}
    assert len(seeds) == 600
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_reseeding_repeats_the_draws():
    reseed(1, "train", 5)
    first = torch.rand(4)
    torch.rand(10)
    reseed(1, "train", 5)
    assert torch.equal(torch.rand(4), first)
