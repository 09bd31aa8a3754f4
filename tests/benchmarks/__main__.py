"""Measures what kdx promises of its speed; one JSON object on stdout.

Times are of whole processes, the compared ones in turn, so that a noisy machine disturbs all alike; read the ratios.
"""

import argparse
import json
import sys

from tests.benchmarks import (
    attention,
    decoding,
    growth,
    run_cost,
    scale,
    startup,
    text,
    throughput,
)

PARTS = {
    "startup": startup.measure,
    "run_cost": run_cost.measure,
    "attention": attention.measure,
    "throughput": throughput.measure,
    "text": text.measure,
    "decoding": decoding.measure,
    "growth": growth.measure,
    "scale": scale.measure,
}


def main() -> None:
    """Run all parts, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    wanted = parser.parse_args().parts or list(PARTS)
    json.dump({part: PARTS[part]() for part in wanted}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
