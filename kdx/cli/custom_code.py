"""Reports whose code a command is about to run."""

from pathlib import Path

from kdx.cli.console import say
from kdx.components.registry import components_of
from kdx.grid.plan import Plan


def announce(plan: Plan) -> None:
    """Print a line for each custom component that runs of the plan use."""
    for component in components_of(plan.components):
        source = component.package or Path(component.folder, component.path).absolute()
        hash = component.sha256[:8]
        say(f"note: runs the code of {component.axis} {component.word}, from {source} (source {hash})")
