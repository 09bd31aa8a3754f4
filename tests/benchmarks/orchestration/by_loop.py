"""A plain loop in one process. Its results are lines of a file."""

import sys
from pathlib import Path

from tests.benchmarks.orchestration.one_run import one_run

with Path("results.txt").open("a") as results:
    for seed in range(int(sys.argv[1])):
        print(seed, one_run(seed), file=results, flush=True)
