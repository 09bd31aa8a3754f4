"""Exit codes as somebody's script meets them: the reference has them in one table, and each is shown here."""

import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from grids import LONG, MIXED
from terminal import Terminal
from waiting import wait_until

ROOT = Path(__file__).parents[2]


def documented() -> list[int]:
    page = ROOT / "docs" / "reference" / "exit-codes.md"
    table = page.read_text(encoding="utf-8").partition("| code |")[2].partition("\n\n")[0]
    return [int(code) for row in table.splitlines()[2:] for code in re.findall(r"\d+", row.split("|")[1])]


def typed(command: str):
    return lambda terminal: terminal.type(command).returncode


def changed(terminal: Terminal, change: str) -> int:
    """Return the exit code of `kdx sweep` after a change of kdx itself."""
    program = f"import kdx.cli.app as app, kdx.sweep.server_process as host; {change}; app.main()"
    return terminal.type(f'{sys.executable} -c "{program}" sweep quickstart').returncode


def fault_of_kdx(terminal: Terminal) -> int:
    return changed(terminal, "app.app = lambda: {}[0]")


def failed_run(terminal: Terminal) -> int:
    terminal.write("mixed.yaml", MIXED)
    swept = terminal.type("kdx sweep mixed.yaml --set seeds=1")
    assert terminal.type("kdx resume").returncode == swept.returncode, "as long as the failed run stands"
    return swept.returncode


def other_number(terminal: Terminal) -> int:
    shutil.copy(ROOT / "runs.db.example", terminal.folder / "runs.db")
    terminal.type(r"kdx report --format markdown | sed 's/ \([0-9]*\.[0-9]\)/ 9\1/' > paper.md")
    return terminal.type("kdx check paper.md").returncode


def killed_server(terminal: Terminal) -> int:
    dies = terminal.folder / "dies"
    dies.write_text("#!/bin/sh\nkill -9 $$\n")
    dies.chmod(0o755)
    return changed(terminal, "host.sys.executable = './dies'")


def stopped(signum: int):
    def by(terminal: Terminal) -> int:
        terminal.write("grid.yaml", LONG.replace("steps: 800", "steps: 100000"))
        sweep = terminal.start("sweep", "grid.yaml", "--set", "seeds=1")
        wait_until(lambda: terminal.is_at_work())
        sweep.send_signal(signum)
        return sweep.wait(300)

    return by


SHOWN = {
    0: typed("kdx plan quickstart"),
    1: fault_of_kdx,
    2: typed("kdx plan no-such-grid"),
    3: typed("kdx report --db absent.db"),
    4: failed_run,
    5: other_number,
    74: typed("kdx plan quickstart > /dev/full"),
    75: killed_server,
    129: stopped(signal.SIGHUP),
    130: stopped(signal.SIGINT),
    143: stopped(signal.SIGTERM),
}


@pytest.mark.slow
@pytest.mark.parametrize("code", documented())
def test_every_documented_exit_code_is_what_a_command_ends_with(terminal, code, figure):
    assert SHOWN[code](terminal) == code
    figure(f"exit {code}")


def test_the_readme_has_every_exit_code():
    assert documented() == sorted(SHOWN)
