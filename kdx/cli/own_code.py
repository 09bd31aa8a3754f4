"""Says whose code a command is about to run."""

from kdx.cli.console import say
from kdx.grid.plan import Plan
from kdx.sweep.trial import own_parts


def announce(plan: Plan) -> None:
    """One line for each part of one's own that runs of the plan use."""
    for part in own_parts(plan):
        whose = f"of {part.package}" if part.package else "of a file"
        say(f"note: runs the code of {part.axis} {part.word}, {whose} (source {part.sha256[:8]})")
