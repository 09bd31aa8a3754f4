"""Makes what the golden set holds, through what a user has: the command line with --json, `kdx.api`, and files.

What may change without anybody noticing is masked or left out: ids, times, hosts, versions, fingerprints. Numbers are
written with seven digits. A set that differs is JSON or text that can be read.
"""

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import torch
from typer.testing import CliRunner

import kdx
import kdx.api
from kdx.cli.app import app
from kdx.grid.identity import hashed
from tests.golden.vectors import vectors

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
EXAMPLE = ROOT / "runs.db.example"
EXPERIMENTS = ROOT / "experiments"
FAMILIES = ("kernel", "position", "value", "filter", "normaliser", "encoding", "mixer", "space")
"""The keys of a grid whose names have vectors."""

QUICKSTART = {
    "seeds": 2,
    "training.steps": 10,
    "training.warmup": 5,
    "training.validate_every": 5,
}
SHOWN_IN_FULL = ("quickstart", "tsai2019/table1", "shaw2018/table3", "extrapolation/mini", "spaces/graph")
"""Grids of which the first cell's settings are written out."""
REPORTS = {
    "txt": ["--format", "text"],
    "md": ["--format", "markdown"],
    "tex": ["--format", "latex"],
    "csv": ["--format", "csv"],
    "json": ["--json"],
    "html": ["--format", "html"],
    "statistics.md": ["--format", "markdown", "--statistics"],
}
"""Suffix → options of `kdx report`."""
LIVE_REPORTS = ("txt", "md", "tex", "csv", "json")
"""Those that are made of the sweep of quickstart as well."""
DIGITS = 7
VECTOR_DIGITS = 12
LINE = 180  # characters that a value takes on one line of JSON at most
PATIENCE = 300.0  # seconds


def everything(folder: Path) -> dict[str, str]:
    """Every file of the set: name → text.

    Args:
        folder: an empty one, for databases and prepared data.
    """
    databases = {name: sweep(folder) for name, sweep in SWEEPS.items()}
    live = {f"{name}.json": as_json(runs(database)) for name, database in databases.items()}
    live |= {
        "conditions.json": as_json(conditions(databases["quickstart"])),
        "tasks-report.txt": report(databases["tasks"], "txt"),
        "quickstart-claims.json": as_json(verdicts(databases["quickstart"])),
    }
    live |= {f"quickstart-report.{suffix}": report(databases["quickstart"], suffix) for suffix in LIVE_REPORTS}
    return live | standing()


def standing() -> dict[str, str]:
    """The files that take no training."""
    return {
        **{f"example-report.{suffix}": report(EXAMPLE, suffix) for suffix in REPORTS},
        "example-claims.json": as_json(claims(EXAMPLE)),
        "plans.json": as_json(plans()),
        "settings.json": as_json(first_settings()),
        "vectors.json": as_json(vectors(), digits=VECTOR_DIGITS),
    }


# The command line


def environment(folder: Path) -> dict[str, str]:
    """The variables of a command, without any that would change what kdx does or shows."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KDX_")}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    fixed = {"COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "KDX_DATA": str(folder / "data")}
    return {**inherited, **fixed, "PYTHONPATH": path}


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start kdx in a session of its own, whose process group can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "kdx", *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def train(folder: Path, *arguments: str) -> None:
    """Run a command that trains, in a process of its own, and must succeed."""
    process = start(folder, *arguments)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"kdx {' '.join(arguments)}: exit code {process.returncode}\n{output[-4000:]}")


def read(folder: Path, *arguments: str) -> str:
    """The stdout of a command that only reads, in this process, which has imported what it needs; it must succeed."""
    variables: dict[str, str | None] = {**dict.fromkeys(os.environ), **environment(folder)}
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, arguments, env=variables, catch_exceptions=False).stdout


# Sweeps


def sweep_quickstart(folder: Path) -> Path:
    """Train quickstart, shortened; its database."""
    shortened = [option for key, value in QUICKSTART.items() for option in ("--set", f"{key}={value}")]
    return _sweep(folder, "quickstart", "quickstart", *shortened)


def sweep_tasks(folder: Path) -> Path:
    """Train a cell of each task; its database."""
    return _sweep(folder, "tasks", str(FOLDER / "tasks.yaml"))


def sweep_resume(folder: Path) -> Path:
    """Train resume.yaml without a break; its database."""
    return _sweep(folder, "resume", str(FOLDER / "resume.yaml"))


def _sweep(folder: Path, name: str, *grid: str) -> Path:
    database = folder / f"{name}.db"
    train(folder, "sweep", *grid, "--db", database.name, "--workers", "2")
    return database


SWEEPS = {"quickstart": sweep_quickstart, "tasks": sweep_tasks, "resume": sweep_resume}


class TooLate(Exception):
    """A run had ended before it could be broken off."""


def break_and_resume(folder: Path) -> tuple[Path, list[list[int]]]:
    """Train resume.yaml, interrupted so that there are checkpoints, resumed, killed with SIGKILL, and resumed again.

    Returns:
        The database, and the step of each run, in the order of the plan, after the interruption and after the kill.
    """
    for attempt in range(10):
        database = folder / f"broken-{attempt}.db"
        try:
            stops = [_broken(database, "sweep", signal.SIGINT), _broken(database, "resume", signal.SIGKILL)]
        except TooLate:
            continue
        train(folder, "resume", "--db", database.name, "--workers", "2")
        return database, stops
    raise TooLate("in each of 10 attempts")


def _broken(database: Path, verb: str, signum: signal.Signals) -> list[int]:
    """Start or resume the sweep, and break it off when a run has validated anew; the step of each run then."""
    before = _validations(database)
    grid = [str(FOLDER / "resume.yaml")] if verb == "sweep" else []
    process = start(database.parent, verb, *grid, "--db", database.name, "--workers", "2")
    deadline = time.monotonic() + PATIENCE
    try:
        while _validations(database) == before and process.poll() is None:
            assert time.monotonic() < deadline, f"no validation for {PATIENCE} s"
            time.sleep(0.01)
        if signum == signal.SIGINT:
            process.send_signal(signum)
            process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
    runs_then = _resumed_runs(database)
    steps = kdx.load_grid(FOLDER / "resume.yaml").cells[0].spec.training.steps
    # In its last validation or its test a run needs no checkpoint.
    if any(run.state in ("completed", "diverged") or run.step == steps for run in runs_then):
        raise TooLate
    assert process.returncode in (130, -signal.SIGKILL), output
    return [run.step for run in runs_then]


def _resumed_runs(database: Path) -> list[kdx.api.Run]:
    return list(kdx.runs("resume", database)) if database.exists() else []


def _validations(database: Path) -> int:
    """How many validations the logs of runs have; the database has them a second later or more."""
    logs = database.with_suffix(".files").glob("*/log.txt")
    return sum(log.read_text().count("valid/loss ") for log in logs)


# Numbers


def conditions(database: Path) -> dict[str, Any]:
    """What decides whether bits compare: the hash of some arithmetic that kdx records of a run; the rest is to read."""
    environments = json.loads(read(database.parent, "show", "1", "--json", "--db", str(database)))["environment"]
    return {name: environments[name] for name in ("canary", "torch", "cpu_capability")}


def runs(database: Path) -> dict[str, Any]:
    """Run → every number that it recorded, its evaluations, and what its weights come to; not rounded."""
    numbers = _numbers(database)
    evaluations: dict[int, dict[str, Any]] = {}
    for each in kdx.evaluations(database=database):
        shown = {"settings": dict(each.settings), "metrics": dict(each.metrics), "error": each.error}
        evaluations.setdefault(each.run, {})[each.name or "?"] = shown
    return {
        " · ".join([*run.labels.values(), f"seed {run.seed}"]): {
            "state": run.state,
            "step": run.step,
            "selected": run.selected,
            "selected by": run.metric,
            "valid score": run.valid_score,
            "test score": run.test_score,
            "metrics": numbers[run.id],
            "evaluations": evaluations.get(run.id, {}),
            "weights": weights(database, run.id),
        }
        for run in kdx.runs(database=database)
    }


def _numbers(database: Path) -> dict[int, dict[str, dict[str, float]]]:
    """Run id → metric → step → value, for all that was recorded."""
    recorded = read(
        database.parent, "query", "--json", "--db", str(database), "SELECT run_id, name, step, value FROM curves"
    )
    numbers: dict[int, dict[str, dict[str, float]]] = {}
    for row in json.loads(recorded):
        numbers.setdefault(row["run_id"], {}).setdefault(row["name"], {})[str(row["step"])] = row["value"]
    return numbers


def weights(database: Path, run: int) -> dict[str, Any]:
    """The weights that were tested: how many, their norm, a projection, and a hash of their bits.

    The names and the order of the tensors do not matter.
    """
    model = kdx.load_run(run, database, home=database.parent / "data").model
    tensors = [tensor.detach().cpu() for tensor in model.state_dict().values()]
    hashes = sorted(hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest() for tensor in tensors)
    flat = [tensor.flatten().to(torch.float64).numpy() for tensor in tensors]
    directions = np.random.RandomState(0).standard_normal(max(map(len, flat)))
    return {
        "numbers": sum(map(len, flat)),
        "norm": float(np.sqrt(sum((values**2).sum() for values in flat))),
        "projection": float(sum((values * directions[: len(values)]).sum() for values in flat)),
        "bits": hashlib.sha256("".join(hashes).encode()).hexdigest()[:16],
    }


def first_steps(database: Path) -> list[list[int]]:
    """The step that each attempt of each run began at."""
    shown = (
        read(database.parent, "show", str(run.id), "--json", "--db", str(database))
        for run in kdx.runs(database=database)
    )
    return [[attempt["first_step"] for attempt in json.loads(text)["attempts"]] for text in shown]


# Tables and claims


def report(database: Path, suffix: str) -> str:
    """What `kdx report` shows, without ids."""
    text = read(database.parent, "report", "--db", str(database), *REPORTS[suffix])
    match suffix:
        case "json":
            return as_json(masked(json.loads(text)))
        case "csv":
            return _rounded_csv(text)
        case "html":
            return _Tables.of(text)
        case _:
            return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def claims(database: Path) -> Any:
    """What `kdx claims` shows of every paper inside kdx, without ids; of what is not tested only what is compared."""
    shown = masked(json.loads(read(database.parent, "claims", "--json", "--db", str(database))))
    for setting in (each for paper in shown["papers"] for claim in paper["claims"] for each in claim["settings"]):
        setting["contrasts"] = [_untested(each) if each["n"] == 0 else each for each in setting["contrasts"]]
    return shown


def _untested(contrast: dict[str, Any]) -> dict[str, Any]:
    return {name: contrast[name] for name in ("where", "a", "b", "expect", "margin", "verdict", "reason")}


def verdicts(database: Path) -> dict[str, Any]:
    """Paper and claim → the verdict in each setting, and of what it is made, where something is tested."""
    numbers = ("n", "better_by", "interval", "p", "sd", "verdict", "reason")
    return {
        f"{paper['paper']} {claim['id']}": [
            {
                "setting": each["setting"],
                "verdict": each["verdict"],
                "contrasts": [
                    {name: contrast[name] for name in numbers} for contrast in each["contrasts"] if contrast.get("n")
                ],
            }
            for each in claim["settings"]
        ]
        for paper in claims(database)["papers"]
        for claim in paper["claims"]
    }


def masked(value: Any) -> Any:
    """A value of JSON with hashes and files masked."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return _mask(value) if isinstance(value, str) else value


def _mask(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{32,}\b", "ID", text)
    return re.sub(r"\S*\b(quickstart|tasks|resume|runs)\.db(\.example)?\b", "DB", text)


def _rounded_csv(text: str) -> str:
    rounded = io.StringIO()
    writer = csv.writer(rounded, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        writer.writerow([_rounded_text(_mask(field)) for field in row])
    return rounded.getvalue()


def _rounded_text(field: str) -> str:
    return f"{float(field):.{DIGITS}g}" if re.fullmatch(r"-?\d+\.\d+(e[-+]?\d+)?|-?\d+e[-+]?\d+", field) else field


class _Tables(HTMLParser):
    """The visible text of the tables of a page, but for those that hold times."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[str]] = []
        self.inside = False

    @classmethod
    def of(cls, page: str) -> str:
        parser = cls()
        parser.feed(page)
        lines = ([" ".join(line.split()) for line in "".join(table).split("\n")] for table in parser.tables)
        texts = ("\n".join(filter(None, table)) for table in lines)
        return "\n\n".join(_mask(text) for text in texts if "| seconds" not in text) + "\n"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.inside = True
            self.tables.append([])
        elif self.inside:
            self.tables[-1].append({"tr": "\n", "td": " | ", "th": " | ", "caption": "\n"}.get(tag, " "))

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "table"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1].append(data.replace("\n", " "))


def copied_example(folder: Path) -> Path:
    """The shipped database, where reading it leaves nothing in the checkout."""
    return Path(shutil.copy(EXAMPLE, folder))


# Grids


def shipped() -> list[str]:
    """The names of the grids that kdx ships."""
    return sorted(str(path.relative_to(EXPERIMENTS).with_suffix("")) for path in EXPERIMENTS.rglob("*.yaml"))


def plans() -> dict[str, Any]:
    """Grid → its seeds, tables, evaluations and searches; the settings of its cells are frozen with their ids."""
    return {name: _planned(kdx.load_grid(name)) for name in shipped()}


def _planned(plan: Any) -> dict[str, Any]:
    planned = {
        "name": plan.name,
        "cells": len(plan.cells),
        "runs": len(plan.runs),
        "seeds": list(plan.seeds),
        "tables": {table.name: digest(table.model_dump(mode="json")) for table in plan.tables},
        "evaluations": [str(evaluation) for evaluation in plan.evaluations],
        "searches": {_label(cell): _search(cell.search) for cell in plan.cells if cell.search},
    }
    return {key: value for key, value in planned.items() if value}


def first_settings() -> dict[str, Any]:
    """Grid → the complete settings of its first cell, of a few grids."""
    return {name: _settings(kdx.load_grid(name).cells[0]) for name in SHOWN_IN_FULL}


def _label(cell: Any) -> str:
    return f"{cell.ordinal} {' · '.join(cell.labels.values())}".strip()


def _settings(cell: Any) -> dict[str, Any]:
    """Every setting that makes a cell, those too that have their defaults."""
    return dict(hashed(cell.spec.model_dump(mode="json", by_alias=True)))


def _search(search: Any) -> dict[str, Any]:
    """What a search draws, and how."""
    parameters = {key: choice.plain for key, choice in search.space.items()}
    return {**parameters, "trials": search.tuning.trials, "sampler": search.tuning.sampler.value}


def digest(value: Any) -> str:
    """A short hash of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:10]


def names_of(folder: Path, family: str) -> list[str]:
    """The names that a grid may give for a key, as `kdx explain` lists them."""
    (explained,) = json.loads(read(folder, "explain", family, "--json"))
    return [name for name in explained["values"] if not name.startswith(f"{family}.")]


# JSON


def as_json(value: Any, digits: int = DIGITS) -> str:
    """JSON with numbers rounded, in which what is short stands on one line."""
    return _laid_out(_rounded(value, digits), 0) + "\n"


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        return {str(key): _rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _laid_out(value: Any, indent: int) -> str:
    whole = json.dumps(value, ensure_ascii=False)
    if len(whole) <= LINE - 2 * indent or not isinstance(value, dict | list):
        return whole
    if isinstance(value, dict):
        items: Iterable[str] = (
            f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(item, indent + 1)}" for key, item in value.items()
        )
    else:
        items = (_laid_out(item, indent + 1) for item in value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    margin = "\n" + " " * (indent + 1)
    return opening + margin + ("," + margin).join(items) + "\n" + " " * indent + closing
