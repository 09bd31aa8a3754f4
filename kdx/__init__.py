"""kdx dissects attention: declarative grids of Transformer runs, recorded in SQL, rendered as the paper's tables.

The walk of one run: grid (YAML to plan) → sweep (what to start) → training (metrics) → store (rows) → report (table).
"""

__version__ = "0.1.0"
