"""Runs in other programs, read back by these programs: while they train, after they were stopped, and afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from waiting import has_begun, wait_until

import kdx
from kdx.errors import KdxError
from kdx.mirrors.choice import MirrorName, opened_mirror
from kdx.mirrors.follow import Follower
from kdx.mirrors.interfaces import Mirror, MirroredRun, Point, plain
from kdx.mirrors.tensorboard_mirror import TensorBoard
from kdx.store.database import open_database
from kdx.store.records import RunState

EXAMPLE = Path(__file__).parents[2] / "runs.db.example"
GRID = """
name: tasks/streams
task: prediction
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
data: {corpus: synthetic-language, train_lines: 300}
training: {steps: STEPS, batch_tokens: 256, length: 16, warmup: 3, validate_every: 200, record_every: 5}
axes: {kernel: [exponential, rbf]}
"""
Curves = Mapping[str, Mapping[tuple[str, int], float]]
"""Run → (metric, step) → value."""


@pytest.fixture
def typed(tmp_path, data_home, monkeypatch):
    """Returns a function that starts `kdx` in a folder where every mirror keeps what it has."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    (tmp_path / "grid.yaml").write_text(GRID.replace("STEPS", "900"))

    def start(*words: str, **environment: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "kdx", *words]
        given = os.environ | {"KDX_DATA": str(data_home)} | environment
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=tmp_path, env=given, **pipes)

    return start


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def recorded(folder: Path) -> Curves:
    """What the database has, by the names that runs have elsewhere."""
    curves: dict[str, dict[tuple[str, int], float]] = {}
    with open_database(folder / "runs.db", write=False) as database:
        for run in kdx.runs(database=folder / "runs.db"):
            rows = database.rows("SELECT name, step, value FROM curves WHERE run_id = :run", {"run": run.id})
            curves[f"{run.labels['kernel']} · seed {run.seed}"] = {(name, step): value for name, step, value in rows}
    return curves


def in_tensorboard(folder: Path) -> Curves:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    curves: dict[str, dict[tuple[str, int], float]] = {}
    for run in (folder / "runs.tensorboard" / "tasks-streams").iterdir():
        curve = curves.setdefault(run.name.rpartition(" ")[0].replace(" - ", " · "), {})
        for file in sorted(run.iterdir()):
            for event in EventFileLoader(str(file)).Load():
                for value in event.summary.value:
                    if value.tag != "settings":
                        assert (value.tag, event.step) not in curve, "written twice"
                        (number,) = value.tensor.float_val
                        curve[value.tag, event.step] = number
    return curves


def in_mlflow(folder: Path) -> Curves:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("tasks/streams")
    curves = {}
    for run in client.search_runs([experiment.experiment_id]):
        assert run.info.status == "FINISHED" and run.data.params["model.width"] == "16"
        history = [metric for name in run.data.metrics for metric in client.get_metric_history(run.info.run_id, name)]
        curve = {
            (metric.key.replace("context:", "context=").replace("frequency:", "frequency="), metric.step): metric.value
            for metric in history
        }
        assert len(curve) == len(history), "written twice"
        curves[run.info.run_name] = curve
    return curves


def in_trackio(folder: Path) -> Curves:
    script = (
        "import json\nfrom trackio.sqlite_storage import SQLiteStorage as store\n"
        "print(json.dumps({run: store.get_logs('tasks-streams', run) for run in store.get_runs('tasks-streams')}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    curves: dict[str, dict[tuple[str, int], float]] = {}
    for run, rows in json.loads(done.stdout.splitlines()[-1]).items():
        curve = curves.setdefault(run.rpartition(" ")[0], {})
        for row in rows:
            for name, value in row.items():
                if "/" in name:
                    assert (name, row["step"]) not in curve, "written twice"
                    curve[name, row["step"]] = value
    return curves


READERS = {"tensorboard": in_tensorboard, "mlflow": in_mlflow, "trackio": in_trackio}


def assert_same(there: Curves, here: Curves) -> None:
    assert there.keys() == here.keys()
    for name, curve in here.items():
        assert there[name] == pytest.approx(curve, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("program", READERS)
def test_a_sweep_that_is_stopped_and_resumed_has_its_curves_there_once(typed, tmp_path, program, figure):
    sweep = typed("sweep", "grid.yaml", "--mirror", program, "--workers", "2")
    wait_until(lambda: has_begun(tmp_path / "runs.files"))
    sweep.send_signal(signal.SIGINT)
    code, _, err = ended(sweep)
    assert code == 130 and "mirror" not in err, err
    code, _, err = ended(typed("resume", KDX_MIRROR=program))
    assert code == 0 and "mirror" not in err, err
    there = READERS[program](tmp_path)
    assert_same(there, recorded(tmp_path))
    figure(f"{program}: {sum(map(len, there.values()))} numbers of {len(there)} runs, each once")


@pytest.mark.slow
@pytest.mark.parametrize("program", READERS)
def test_what_is_recorded_is_exported_once_and_then_again_for_the_rest(typed, tmp_path, program):
    assert ended(typed("sweep", "grid.yaml", "--set", "training.steps=20"))[0] == 0
    place = {"tensorboard": "runs.tensorboard", "trackio": str(tmp_path / "trackio")}.get(
        program, f"sqlite:///{tmp_path / 'mlflow.db'}"
    )
    for new in (2, 0):
        code, out, err = ended(typed("export", "--format", program, "--json"))
        counts = {"sweep": "tasks/streams", "program": program, "runs": 2, "new": new, "place": place}
        assert code == 0 and json.loads(out) == counts, err
        said = f"exported 2 runs of tasks/streams to {program}, {new} with new numbers: {place}"
        assert err.splitlines()[-1] == said
    assert_same(READERS[program](tmp_path), recorded(tmp_path))


@pytest.mark.slow
def test_wandb_keeps_a_run_of_each_without_a_network(typed, tmp_path):
    code, _, err = ended(typed("sweep", "grid.yaml", "--set", "training.steps=20", "--mirror", "wandb"))
    assert code == 0 and "mirror" not in err, err
    assert len([*tmp_path.glob("wandb/offline-run-*/run-*.wandb")]) == 2


OUT_OF_REACH = pytest.mark.parametrize(
    ("program", "environment", "why"),
    [
        ("mlflow", {"MLFLOW_TRACKING_URI": "http://me:secret@127.0.0.1:9"}, "http://me:***@127.0.0.1:9/"),
        ("mlflow", {"MLFLOW_TRACKING_URI": "nowhere://at/all"}, "Unsupported"),
        ("mlflow", {"MLFLOW_TRACKING_URI": "file:./mlruns"}, "set `MLFLOW_ALLOW_FILE_STORE=true`"),
        ("mlflow", {"MLFLOW_TRACKING_URI": "sqlite:////proc/mlflow.db"}, "unable to open database file"),
        ("trackio", {"TRACKIO_DIR": "/proc/trackio"}, "No such file or directory: '/proc/trackio'"),
    ],
    ids=["no network", "no such store", "no more supported", "no file may be there", "no folder may be there"],
)


@pytest.mark.slow
@OUT_OF_REACH
def test_an_export_that_its_program_does_not_take_is_one_error(typed, program, environment, why):
    code, out, err = ended(typed("export", "--db", str(EXAMPLE), "--format", program, **environment))
    error, hint = err.splitlines()[-2:]
    assert code == 2 and out == "" and error.startswith(f"error: {program}: ") and why in error, err
    again = f"kdx export tsai2019/table1-mini --format {program} --db {EXAMPLE}"
    assert hint == f"  hint: correct this, then {again} sends the rest"
    assert "Traceback" not in err and "secret" not in err and "retried" not in err


@pytest.mark.slow
@OUT_OF_REACH
def test_a_mirror_that_fails_is_one_note_and_the_sweep_is_unharmed(typed, tmp_path, program, environment, why):
    code, _, err = ended(typed("sweep", "grid.yaml", "--set", "training.steps=20", "--mirror", program, **environment))
    notes = [line for line in err.splitlines() if "mirror" in line]
    assert code == 0 and len(notes) == 1 and notes[0].startswith(f"note: the mirror to {program} ended: "), err
    assert why in notes[0] and {run.state for run in kdx.runs(database=tmp_path / "runs.db")} == {"completed"}


@pytest.mark.slow
def test_a_mirror_on_a_full_disk_is_one_note_and_the_sweep_is_unharmed(typed, tmp_path):
    disk = tmp_path / "runs.tensorboard"
    disk.mkdir()
    small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)], capture_output=True)
    if small.returncode:
        pytest.skip(f"no permission to mount a small disk: {small.stderr.decode().strip()}")
    try:
        code, _, err = ended(typed("sweep", "grid.yaml", "--mirror", "tensorboard"))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    notes = [line for line in err.splitlines() if "mirror" in line]
    assert code == 0 and len(notes) == 1 and "No space left on device" in notes[0], err
    assert {run.state for run in kdx.runs(database=tmp_path / "runs.db")} == {"completed"}


class Noted(Mirror):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.points: dict[int, list[Point]] = {}
        self.ended: list[tuple[int, str]] = []

    def begin(self, run):
        self.points.setdefault(run.id, [])
        return lambda name: 100 if name == "train/loss" else -1

    def write(self, run, points):
        self.points[run.id] += points

    def end(self, run, state):
        self.ended.append((run.id, state.value))


def test_what_a_mirror_has_is_not_sent_again_and_the_rest_in_order():
    noted = Noted()
    with open_database(EXAMPLE, write=False) as database:
        follower = Follower(database, noted)
        follower.send([1, 2])
        follower.send([1, 2])
        rows = [*database.rows("SELECT name, step FROM curves WHERE run_id = 1", {})]
    assert noted.ended == [(1, "completed"), (2, "completed")]
    sent = [(point.name, point.step) for point in noted.points[1]]
    assert [step for _, step in sent] == sorted(step for _, step in sent)
    assert set(sent) == {(name, step) for name, step in rows if name != "train/loss" or step > 100}


def test_seeds_of_a_long_name_have_folders_of_their_own(tmp_path):
    mirror = TensorBoard(tmp_path / "runs")
    for seed in (0, 1):
        name = f"{'long choice of an axis · ' * 9}seed {seed}"
        run = MirroredRun(seed, f"abc-{seed}", "sweep", name, {})
        assert mirror.begin(run)("train/loss") == -1
        mirror.write(run, [Point("train/loss", 5, 1.0)])
        mirror.end(run, RunState.COMPLETED)
    assert len([*tmp_path.glob("runs.tensorboard/sweep/*")]) == 2 and mirror.begin(run)("train/loss") == 5
    assert len(plain("漢" * 100).encode()) <= 100


@pytest.mark.slow
def test_runs_that_have_not_started_are_not_exported(typed, tmp_path):
    assert ended(typed("sweep", "grid.yaml", "--set", "training.steps=20", "--budget", "1s"))[0] in (0, 130)
    before = [run.state for run in kdx.runs(database=tmp_path / "runs.db")]
    code, out, err = ended(typed("export", "--format", "tensorboard", "--json"))
    assert code == 0 and json.loads(out)["runs"] == sum(state != "pending" for state in before), err


@pytest.mark.parametrize("fails", ["begin", "write", "end", "open"])
def test_whatever_fails_in_a_program_is_an_error_with_its_name(tmp_path, monkeypatch, fails):
    def fail(*_: object) -> None:
        raise ConnectionError("no https://me:secret@example.org\nfor a reason")

    monkeypatch.setattr("kdx.mirrors.tensorboard_mirror.TensorBoard", fail if fails == "open" else lambda _: Noted())
    monkeypatch.setattr(Noted, fails, fail, raising=False)
    with (
        pytest.raises(KdxError) as caught,
        open_database(EXAMPLE, write=False) as database,
        opened_mirror(MirrorName.TENSORBOARD, tmp_path, hint="again") as mirror,
    ):
        Follower(database, mirror).send([1])
    problem = "ConnectionError: no https://me:***@example.org"
    assert (caught.value.place, caught.value.problem, caught.value.hint) == ("tensorboard", problem, "again")


def test_names_stay_inside_a_folder():
    assert plain("tsai2019/table1-mini") == "tsai2019-table1-mini"
    assert plain("../../x") == "x" and plain("/") == plain("") == plain("..") == "-" and len(plain("a" * 999)) == 100
