"""One run of real size on real text, broken off every few minutes, beside one that nobody touches: are they identical?

Both lie in a folder, with what was measured, and this can be started again there: the broken run goes on, the unbroken
one begins anew if it was lost. The sweep's own words are in `said.txt` beside each. Exit code 1: they differ.
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from hashlib import file_digest
from pathlib import Path
from typing import Any

from kdx.run_files.files import files_beside, final_weights, folder_of
from kdx.store import reading, schema
from kdx.store.database import open_database
from kdx.store.records import FINAL, RunRecord, RunState

REPOSITORY = Path(__file__).parents[2]
# Translation tells texts too; the mean over three validations lists three files of weights.
GRID = """
name: long
preset: translation-small
data: {corpus: iwslt14}
training: {steps: STEPS, validate_every: EVERY, average: 3, threads: 1}
evaluation: {beam: 1}
select: {metric: loss}
"""
VALIDATIONS = 8
PROBES = (2, 20, 80)
"""Steps of the runs that are measured; the first makes what the others find made, such as the vocabulary."""
EVENTS = ("everything killed", "worker killed", "server killed", "sweep asked to stop")


def main() -> int:
    """Prepare what is not there, run both at once, compare; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.long_run", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("long-run"), help="where both runs are (long-run)")
    parser.add_argument("--minutes", type=float, default=48.0, help="processor time of the unbroken run (48)")
    parser.add_argument("--kill-every", type=float, default=240.0, help="seconds between two kills, on average (240)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="of the kills")
    parser.add_argument("--grid", type=Path, help="of one run, with STEPS and EVERY for numbers; needs its corpus")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    plan_file = asked.folder / "plan.json"
    if not plan_file.exists():
        text = asked.grid.read_text() if asked.grid else GRID
        planned = {"seed": asked.seed, **_planned(asked.folder, text, asked.minutes)}
        plan_file.write_text(json.dumps(planned))
    plan = json.loads(plan_file.read_text())
    say(f"SEED={plan['seed']}: {plan['steps']} steps of {plan['seconds_a_step']:.3f} s on the processor")
    whole, broken = Sweep(asked.folder / "unbroken", plan["grid"]), Sweep(asked.folder / "broken", plan["grid"])
    if not whole.over():
        shutil.rmtree(whole.folder, ignore_errors=True)
        whole = Sweep(whole.folder, plan["grid"])
        whole.start()
    _break(broken, plan["seed"], asked.kill_every)
    whole.wait()
    return _compare(whole, broken)


class Sweep:
    """A sweep of one run, in a folder of its own."""

    def __init__(self, folder: Path, grid: str) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "grid.yaml").write_text(grid)

    @property
    def database(self) -> Path:
        return self.folder / "runs.db"

    def start(self) -> None:
        """Or go on."""
        words = ["resume"] if self.record() else ["sweep", "grid.yaml"]
        with (self.folder / "said.txt").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kdx", *words, "--workers", "1"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def wait(self) -> None:
        """Keeps the processor time that it took, with all its processes."""
        if self.process:
            _, _, used = os.wait4(self.process.pid, 0)
            self.took.write_text(f"{used.ru_utime + used.ru_stime}")
            self.process = None

    @property
    def took(self) -> Path:
        return self.folder / "processor-seconds.txt"

    def record(self) -> RunRecord | None:
        """What the database knows of the run; None: nothing yet."""
        try:
            with open_database(self.database, write=False) as database:
                return reading.load_sweep(database).runs[0]
        except Exception:  # it is being made, or a killed writer's journal is being rolled back
            return None

    def over(self) -> bool:
        record = self.record()
        return record is not None and record.state in FINAL


def _break(sweep: Sweep, seed: int, every: float) -> None:
    """Has the run come to its end, through one fault after another."""
    log = sweep.folder / "faults.jsonl"
    faults = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    while not sweep.over():
        record = sweep.record()
        if record and record.state in (RunState.FAILED, RunState.CANCELLED):
            raise SystemExit(f"the broken run is {record.state}: {record.error}; look at {sweep.folder}/said.txt")
        if sweep.process is None or sweep.process.poll() is not None:
            sweep.start()
        draw = random.Random(f"{seed} {len(faults)}")
        event, seconds = draw.choice(EVENTS), draw.uniform(0.5, 1.5) * every
        begun = _progress(sweep)
        # A run that is killed before it did anything fails the third time, as it should.
        if not _passes(sweep, lambda begun=begun: _progress(sweep) <= begun):
            continue
        until = time.monotonic() + seconds
        if not _passes(sweep, lambda until=until: time.monotonic() < until):
            continue
        _do(event, sweep)
        faults.append({"event": event, "step": _progress(sweep)})
        with log.open("a") as file:
            file.write(json.dumps(faults[-1]) + "\n")
        say(f"{len(faults)}: {event} at step {faults[-1]['step']}")


def _passes(sweep: Sweep, goes_on: Any) -> bool:
    """Waits; whether the sweep is still there after it."""
    while goes_on():
        if sweep.process.poll() is not None:
            return False
        time.sleep(0.2)
    return True


def _progress(sweep: Sweep) -> int:
    record = sweep.record()
    return record.progress_step if record else 0


def _do(event: str, sweep: Sweep) -> None:
    processes = _family(sweep.process.pid)  # the sweep, its server, a worker
    victims = {
        EVENTS[0]: (processes, signal.SIGKILL),
        EVENTS[1]: (processes[2:], signal.SIGKILL),
        EVENTS[2]: (processes[1:2], signal.SIGKILL),
        EVENTS[3]: (processes[:1], signal.SIGTERM),
    }
    pids, signum = victims[event]
    for pid in pids:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            continue
    if event in (EVENTS[0], EVENTS[3]):
        sweep.wait()


def _family(pid: int) -> list[int]:
    """A process and all that descend from it, the elders first."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # else nobody would know of it when this is started again


def _planned(folder: Path, text: str, minutes: float) -> dict[str, Any]:
    """A grid that takes so many minutes of processor time, by the time of short runs with one validation each."""
    seconds = []
    for steps in PROBES:
        shutil.rmtree(folder / f"probe-{steps}", ignore_errors=True)  # of a time that was broken off
        probe = Sweep(folder / f"probe-{steps}", _sized(text, steps, steps))
        probe.start()
        probe.wait()
        if not probe.over():
            raise SystemExit(f"the grid does not run; look at {probe.folder}/said.txt")
        seconds.append(float(probe.took.read_text()))
        shutil.rmtree(probe.folder)
    step = (seconds[2] - seconds[1]) / (PROBES[2] - PROBES[1])
    # The rest is the start, a validation and a test, which takes longer; some of it comes again at each validation.
    rest = max(0.0, seconds[1] - PROBES[1] * step)
    steps = max(VALIDATIONS, round((60 * minutes - rest) / step))
    return {"grid": _sized(text, steps, steps // VALIDATIONS), "steps": steps, "seconds_a_step": step}


def _sized(text: str, steps: int, every: int) -> str:
    return text.replace("STEPS", str(steps)).replace("EVERY", str(every))


def _compare(whole: Sweep, broken: Sweep) -> int:
    """Tells all figures; 1 where anything differs."""
    one, other = _left(whole), _left(broken)
    kept = broken.folder / "faults.jsonl"
    faults = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    told = ", ".join(f"{event} {times}" for event, times in Counter(fault["event"] for fault in faults).items())
    print(f"faults: {len(faults)} ({told})")
    print(f"unbroken: {float(whole.took.read_text()) / 60:.1f} minutes on the processor")
    print(f"attempts: {len(other['resumed'])}, gone on from steps {other['resumed']}; unbroken: {one['resumed']}")
    same = one["resumed"] == [0]
    for part in ("states", "rows", "differs", "weights", "outputs"):
        equal = one[part] == other[part]
        same &= equal
        size = f"{len(one[part])} " if part in ("rows", "outputs") else ""
        differ = ""
        if part == "rows" and not equal:
            keys = one[part].keys() | other[part].keys()
            differ = f": {sum(one[part].get(key) != other[part].get(key) for key in keys)} of {len(keys)}"
        print(f"{size}{part}: {'identical' if equal else 'DIFFER' + differ}")
    print(f"weights {one['weights']}")
    print("IDENTICAL" if same else "NOT IDENTICAL")
    return 0 if same else 1


def _left(sweep: Sweep) -> dict[str, Any]:
    with open_database(sweep.database, write=False) as database:
        (run,) = reading.load_sweep(database).runs
        attempts = reading.attempts(database, run.id)
        with database.read() as connection:
            rows = connection.execute(schema.metric.select()).all()
            outputs = connection.execute(schema.output.select()).all()
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    files = files_beside(sweep.database)
    weights = final_weights(files, run)
    assert weights is not None, f"{run.state}, without weights"
    with (files / folder_of(run) / weights.name).open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return {
        "states": (run.state, run.valid_score, run.test_score),
        "rows": {(row.name, row.step): row.bits for row in rows},
        "differs": sum(bool(row.differs) for row in rows),
        "weights": digest,
        "outputs": {row.name: row.lines for row in outputs},
        "resumed": [attempt.resumed_step for attempt in attempts if attempt.resumed_step is not None],
    }


def say(text: str) -> None:
    """With the time, on stderr."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
