"""Start-up: kdx's help against that of a Typer app with two commands."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROUNDS = 15
LIMIT = 1.5

TWO_COMMANDS = '''
import typer

app = typer.Typer()


@app.command()
def one(name: str) -> None:
    """The first."""


@app.command()
def two(count: int = 1) -> None:
    """The second."""


app()
'''


def measure() -> dict[str, object]:
    """Median seconds of each command, and the ratios to the two-command app."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "two.py"
        script.write_text(TWO_COMMANDS)
        kdx = str(Path(sys.executable).parent / "kdx")
        commands = {
            "typer_two_commands": [sys.executable, str(script), "--help"],
            "kdx_help": [kdx, "--help"],
            "kdx_report_help": [kdx, "report", "--help"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                seconds[name].append(time.perf_counter() - start)
    medians = {name: median(values) for name, values in seconds.items()}
    base = medians["typer_two_commands"]
    ratios = {name: round(value / base, 2) for name, value in medians.items() if name != "typer_two_commands"}
    return {
        "seconds": {name: round(value, 3) for name, value in medians.items()},
        "ratio": ratios,
        "limit": LIMIT,
        "within": all(ratio <= LIMIT for ratio in ratios.values()),
    }
