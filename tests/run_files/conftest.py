"""Makes the runs and files of these tests importable, and the small grids."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "sweep")]
