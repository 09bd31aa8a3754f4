"""Turns a grid file into its plan: `source`, `load` read it, `expand` multiplies it out, `identity` names its cells."""

MOST_RUNS = 10_000
"""Largest number of runs of a grid, unless the user allows more."""
