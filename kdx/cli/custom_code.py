"""Says whose code a command is about to run."""

from pathlib import Path

from kdx.cli.console import say
from kdx.components.registry import components_of
from kdx.grid.plan import Plan


def announce(plan: Plan) -> None:
    """Print a line for each custom component that runs of the plan use."""
    for one in components_of(plan.components):
        whose = one.package or Path(one.folder, one.path).absolute()
        say(f"note: runs the code of {one.axis} {one.word}, from {whose} (source {one.sha256[:8]})")
