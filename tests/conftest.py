"""What every test may use.

A test of a fault takes `figure` and puts what it measured into one report; `pytest -m fault` runs these alone. One that
draws its faults at random takes `series`: it draws from SEED, which it prints; the same SEED draws the same again.
"""

import hashlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

# Makes the small grids importable; last, so that it hides nothing.
sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and golden vectors beside the checkout (KDX_SHARED); absent, the test is skipped.

    In CI the folder must be there, so its absence fails.
    """
    folder = Path(os.environ.get("KDX_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        reason = f"no corpora and golden vectors at {folder}; set KDX_SHARED"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture
def data_home(tmp_path_factory, monkeypatch) -> Path:
    """A folder for prepared and cached corpora, shared by the tests of one process."""
    home = tmp_path_factory.getbasetemp() / "data-home"
    monkeypatch.setenv("KDX_DATA", str(home))
    return home


@pytest.fixture
def reword():
    """Changes every cell of a database as another kdx would have written it: under the id of the result."""

    def reword(connection, change) -> None:
        execute = getattr(connection, "exec_driver_sql", None) or connection.execute
        execute("PRAGMA defer_foreign_keys = ON")
        for cell_id, *texts in execute("SELECT id, spec, resolved FROM cell").fetchall():
            spec, resolved = map(json.loads, texts)
            change(spec)
            change(resolved)
            text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
            new_id = hashlib.sha256(text.encode()).hexdigest()[:32]
            values = (new_id, text, json.dumps(resolved, sort_keys=True), cell_id)
            execute("UPDATE cell SET id = ?, spec = ?, resolved = ? WHERE id = ?", values)
            for table in ("sweep_cell", "sweep_run", "run"):
                execute(f"UPDATE {table} SET cell_id = ? WHERE cell_id = ?", (new_id, cell_id))

    return reword


FIGURES = "figure"


@pytest.fixture(scope="session")
def seed() -> int:
    """Of every series of this session."""
    return int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture
def series(seed, request, record_property) -> random.Random:
    """Random numbers of one series, which depend on SEED and on the test alone."""
    record_property(FIGURES, f"SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def figure(record_property):
    """Puts a line into the report of faults."""
    return lambda text: record_property(FIGURES, text)


def pytest_configure() -> None:
    # A shell that starts the tests in its background, or nohup, has them ignore these, and so every process of theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config, items) -> None:
    for item in items:
        if "figure" in item.fixturenames:
            item.add_marker(pytest.mark.fault)
    if not config.option.markexpr:
        # Long series run on request alone.
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_terminal_summary(terminalreporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, [text for name, text in report.user_properties if name == FIGURES]) for report in reports]
    if any(figures for _, figures in told):
        terminalreporter.section("faults")
    for place, figures in told:
        if figures:
            terminalreporter.write_line(f"{place.rpartition('::')[2]}: {'; '.join(figures)}")
