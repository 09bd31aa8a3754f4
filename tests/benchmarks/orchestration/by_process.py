"""A process a run. Its results are lines of a file."""

import subprocess
import sys

RUN = """
import sys
from tests.benchmarks.orchestration.one_run import one_run
print(sys.argv[1], one_run(int(sys.argv[1])))
"""

with open("results.txt", "a") as results:  # noqa: PTH123
    for seed in range(int(sys.argv[1])):
        subprocess.run([sys.executable, "-c", RUN, str(seed)], stdout=results, check=True)
