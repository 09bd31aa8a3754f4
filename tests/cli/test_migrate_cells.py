"""`kdx db migrate-cells` follows a word of one's own that was moved or renamed; nothing is lost or half-done."""

import json
import shutil

import pytest
from looked_after import refused, typed
from sqlalchemy import select

from kdx.cli import running
from kdx.errors import StorageError
from kdx.grid.load import load_grid
from kdx.run_files import moves
from kdx.run_files.files import files_beside, folder_of
from kdx.store import reading, recording
from kdx.store.check import check
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.store.schema import cell, cell_migration, sweep_cell
from kdx.training.checkpoint import CheckpointFiles

pytestmark = pytest.mark.slow

OLD, NEW = "my_kernels.py:Cauchy", "attention/my_kernels.py:Cauchy"
RENAME = f"{OLD}={NEW}"
TABLES = """
seeds: 2
axes: {kernel: [my_kernels.py:Cauchy, rbf]}
tables: [{name: t, rows: [kernel], where: {kernel: my_kernels.py:Cauchy}}]
"""


@pytest.fixture
def folder(own_kernel, monkeypatch):
    """Where somebody has a kernel of their own; its grid has two cells, and two seeds."""
    monkeypatch.chdir(own_kernel)
    grid = own_kernel / "grid.yaml"
    grid.write_text(grid.read_text().replace("kernel: my_kernels.py:Cauchy", "") + TABLES)
    return own_kernel


def register(path: str = "grid.yaml"):
    plan = load_grid(path)
    with open_database("runs.db", write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        return plan, {(run.cell_id, run.seed): run for run in reading.load_sweep(database).runs}


def moved(folder, to: str = "attention") -> None:
    """The files of the kernel are in another folder, and the grid says so."""
    (folder / to).mkdir()
    for name in ("my_kernels.py", "helpers.py"):
        shutil.move(folder / name, folder / to / name)
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("my_kernels.py:", f"{to}/my_kernels.py:"))


def completed(run, score: float = 1.0) -> None:
    from kdx.store import leases

    with open_database("runs.db", write=True) as database:
        number = leases.claim(database, run.id, "me", 60)
        recording.RunWriter(database, run.id, "me", number).complete(score, 10, score, {}, 10)
    CheckpointFiles(files_beside(database.location) / folder_of(run)).write("best", 10, {"run": run.id})
    (files_beside(database.location) / folder_of(run) / "log.txt").write_text(f"log of run {run.id}")


def stored(table, path: str = "runs.db"):
    with open_database(path, write=False) as database, database.read() as connection:
        return connection.execute(select(table)).all()


def logs() -> dict[int, str]:
    """Run → what its log says."""
    with open_database("runs.db", write=False) as database:
        files = files_beside(database.location)
        runs = reading.inventory(database).runs
    return {run.id: path.read_text() for run in runs if (path := files / folder_of(run) / "log.txt").exists()}


def healthy() -> None:
    with open_database("runs.db", write=False) as database:
        assert check(database).faults == ()


def test_cells_get_the_ids_that_a_grid_with_the_new_word_has(folder):
    before, runs = register()
    own, other = before.cells
    completed(runs[own.id, 0])
    moved(folder)
    after = load_grid("grid.yaml")
    assert after.cells[0].id != own.id and after.cells[1].id == other.id
    said = typed("db", "migrate-cells", RENAME)
    assert "1 cell has another id now, 2 runs with them; moved 1 folder of files" in said.stderr
    with open_database("runs.db", write=False) as database:
        record = reading.load_sweep(database)
    assert {one.id for one in record.cells} == {one.id for one in after.cells}
    assert {run.id for run in record.runs} == {run.id for run in runs.values()}
    assert record.grid["tables"][0]["where"] == {"kernel": NEW}
    assert [one.labels["kernel"] for one in record.cells] == [NEW, "rbf"]
    assert logs() == {1: "log of run 1"}
    (row,) = stored(cell_migration)
    assert (row.former_id, row.cell_id, row.change) == (own.id, after.cells[0].id, f"{OLD} → {NEW}")
    assert own.id not in {row.id for row in stored(cell)}
    healthy()
    # Planning the grid as it is now changes nothing.
    rows = stored(sweep_cell)
    recording_of = load_grid("grid.yaml")
    with open_database("runs.db", write=True) as database:
        recording.register(database, recording_of, recording_of.grid)
    assert stored(sweep_cell) == rows


def test_a_run_is_found_by_either_id_and_the_table_says_so(folder):
    plan, runs = register()
    for run in runs.values():
        completed(run)
    moved(folder)
    typed("db", "migrate-cells", RENAME)
    former = plan.cells[0].id
    for cell_id in (former, stored(cell_migration)[0].cell_id):
        found = json.loads(typed("status", "grid", f"cell={cell_id}", "--json").stdout)["runs"]
        assert [one["seed"] for one in found] == [0, 1]
    report = " ".join(typed("report").stdout.split())
    assert f"Renamed since: {OLD} → {NEW}" in report
    traced = json.loads(typed("trace", "t", NEW, "--json").stdout)
    assert [one["former_id"] for one in traced["former_cells"]] == [former]
    assert f"formerly {former}" in " ".join(typed("trace", "t", NEW).stdout.split())


def test_a_file_may_be_called_otherwise_where_its_content_is_the_same(folder):
    register()
    (folder / "my_kernels.py").rename(folder / "heavy_tails.py")
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("my_kernels.py:", "heavy_tails.py:"))
    typed("db", "migrate-cells", f"{OLD}=heavy_tails.py:Cauchy")
    assert {row.id for row in stored(cell)} == {one.id for one in load_grid("grid.yaml").cells}


def test_another_source_is_refused_with_what_to_do(folder):
    register()
    moved(folder)
    kernel = folder / "attention" / "my_kernels.py"
    kernel.write_text(kernel.read_text().replace("return 1 /", "return 2 /"))
    before = (folder / "runs.db").read_bytes()
    error = refused("db", "migrate-cells", RENAME)
    assert error.problem == f"the source of `{NEW}` is not the one that cells with `{OLD}` were made with"
    assert "kdx export --parts" in error.hint and "kdx sweep GRID makes new cells" in error.hint
    assert (folder / "runs.db").read_bytes() == before


def test_what_renames_nothing_is_refused(folder):
    register()
    moved(folder)
    assert refused("db", "migrate-cells", "my_kernels.py:Cauch=x.py:Y").hint == f"did you mean `{OLD}`?"
    assert refused("db", "migrate-cells", f"{OLD}=nowhere.py:Cauchy").problem
    assert refused("db", "migrate-cells", f"{OLD}=mine").problem == "there is no kernel `mine`"
    for text in ("Cauchy", "=x", "x=", "x=x"):
        assert refused("db", "migrate-cells", text).problem == f"`{text}` renames nothing"
    assert "stands twice" in refused("db", "migrate-cells", RENAME, f"{OLD}=other.py:C").problem
    assert stored(cell_migration) == []


def test_a_dry_run_shows_and_writes_nothing(folder):
    _, runs = register()
    completed(next(iter(runs.values())))
    moved(folder)
    before = (folder / "runs.db").read_bytes()
    said = typed("db", "migrate-cells", RENAME, "--dry-run", "--json")
    found = json.loads(said.stdout)
    assert not found["done"] and [one["change"] for one in found["cells"]] == [f"{OLD} → {NEW}"]
    assert [one["run"] for one in found["runs"]] == [1, 3]
    assert (folder / "runs.db").read_bytes() == before and not (folder / "runs.files" / moves.NOTE).exists()


def both(folder, *, first: RunState | None, second: RunState | None):
    """Runs under the former word and under the new one, with seed 0 in these states; None: it never started."""
    plan, runs = register()
    ends = [runs[plan.cells[0].id, 0]]
    moved(folder)
    plan, runs = register()
    ends.append(runs[plan.cells[0].id, 0])
    for run, state in zip(ends, (first, second), strict=True):
        if state is RunState.COMPLETED:
            completed(run, score=float(run.id))
        elif state is not None:
            with open_database("runs.db", write=True) as database:
                from kdx.store import leases

                number = leases.claim(database, run.id, "me", 60)
                if state is RunState.FAILED:
                    recording.RunWriter(database, run.id, "me", number).fail("no", "", 1)
    return plan, ends


def test_runs_under_both_words_become_generations_the_former_word_first(folder):
    plan, (former, present) = both(folder, first=RunState.COMPLETED, second=RunState.COMPLETED)
    typed("db", "migrate-cells", RENAME)
    with open_database("runs.db", write=False) as database:
        runs = {run.id: run for run in reading.inventory(database).runs}
        standing = {run.seed: run.id for run in reading.load_sweep(database).runs if run.cell_id == plan.cells[0].id}
    assert [(runs[one.id].cell_id, runs[one.id].generation) for one in (former, present)] == [
        (plan.cells[0].id, 0),
        (plan.cells[0].id, 1),
    ]
    assert standing[0] == present.id
    assert logs() == {one.id: f"log of run {one.id}" for one in (former, present)}
    healthy()


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [(RunState.COMPLETED, None, 0), (None, RunState.COMPLETED, 1), (None, None, 1), (RunState.FAILED, None, 0)],
)
def test_a_run_that_never_started_gives_way(folder, first, second, stays):
    plan, ends = both(folder, first=first, second=second)
    typed("db", "migrate-cells", RENAME)
    with open_database("runs.db", write=False) as database:
        (run,) = (run for run in reading.inventory(database).runs if (run.cell_id, run.seed) == (plan.cells[0].id, 0))
    assert (run.id, run.generation) == (ends[stays].id, 0)
    healthy()


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (RunState.FAILED, RunState.COMPLETED, "is failed"),
        (RunState.COMPLETED, RunState.FAILED, "is failed"),
        (RunState.RUNNING, None, "is running"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_the_list_and_nothing_is_done(folder, first, second, problem):
    both(folder, first=first, second=second)
    before = stored(cell)
    error = refused("db", "migrate-cells", RENAME)
    assert problem in error.problem and error.problem.startswith("not to be done now: run ")
    assert stored(cell) == before and stored(cell_migration) == []


def test_words_renamed_twice_are_found_by_every_former_id(folder):
    first, _ = register()
    moved(folder)
    typed("db", "migrate-cells", RENAME)
    (folder / "attention").rename(folder / "kernels")
    typed("db", "migrate-cells", f"{NEW}=kernels/my_kernels.py:Cauchy")
    with open_database("runs.db", write=False) as database:
        ((_, former),) = reading.former_ids(database).items()
    assert former[0] == first.cells[0].id and len(former) == 2
    healthy()


@pytest.mark.parametrize("when", ["before the commit", "after the commit", "among the folders"])
def test_a_killed_call_is_finished_by_the_next_one(folder, monkeypatch, when):
    _, (former, present) = both(folder, first=RunState.COMPLETED, second=RunState.COMPLETED)
    original, count = moves._rename, iter(range(100))

    def killed(*_):
        raise RuntimeError("killed")

    def killed_later(*given):
        return killed() if next(count) == 3 else original(*given)

    if when == "before the commit":
        monkeypatch.setattr("kdx.store.cell_migrations.carry_out", killed)
    elif when == "after the commit":
        monkeypatch.setattr(moves, "_carry_out", killed)
    else:
        monkeypatch.setattr(moves, "_rename", killed_later)
    with pytest.raises(RuntimeError):
        typed("db", "migrate-cells", RENAME)
    assert (folder / "runs.files" / moves.NOTE).exists()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    typed("db", "migrate-cells", RENAME)
    assert logs() == {one.id: f"log of run {one.id}" for one in (former, present)}
    assert not (folder / "runs.files" / moves.NOTE).exists()
    assert len(stored(cell_migration)) == 1
    healthy()


def test_a_sweep_finishes_what_a_killed_call_left_before_it_starts(folder, monkeypatch):
    _, runs = register()
    completed(runs[min(runs)])
    moved(folder)
    monkeypatch.setattr(moves, "_carry_out", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
    from kdx.run_files.folder_ownership import take

    with open_database("runs.db", write=True) as database:
        take(database)
    with pytest.raises(RuntimeError):
        typed("db", "migrate-cells", RENAME)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    with open_database("runs.db", write=True) as database:
        take(database)
    assert len(logs()) == 1


@pytest.fixture
def killed_after_the_commit(folder, monkeypatch):
    """Two runs of renamed cells with their weights, whose folders still have their former names."""
    _, runs = register()
    for run in runs.values():
        completed(run)
    moved(folder)
    monkeypatch.setattr(moves, "_carry_out", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
    with pytest.raises(RuntimeError):
        typed("db", "migrate-cells", RENAME)
    monkeypatch.undo()
    monkeypatch.chdir(folder)


def test_gc_keeps_what_a_killed_call_has_not_moved_yet(killed_after_the_commit):
    error = refused("gc", "--unknown")
    assert "do not have their new names yet" in error.problem and "kdx doctor --fix" in error.hint
    typed("gc", "--unknown", "--unplanned", "--apply")
    assert logs() == {number: f"log of run {number}" for number in (1, 2, 3, 4)}
    assert typed("doctor", "--json").exit_code == 0


def test_doctor_says_that_folders_wait_and_moves_them(killed_after_the_commit):
    said = typed("doctor", "--json")
    (found,) = json.loads(said.stdout)["findings"]
    assert "do not have their new names yet" in found["problem"] and said.exit_code == 5
    assert len(logs()) == 2
    assert typed("doctor", "--fix").exit_code == 0
    assert len(logs()) == 4
    assert json.loads(typed("doctor", "--json").stdout)["findings"] == []


def test_who_reads_files_is_told_that_they_are_not_moved_yet(killed_after_the_commit, tmp_path):
    from kdx.run_files.load_run import load_run

    for words in (("logs", "1"), ("export", "--to", str(tmp_path / "out"), "--weights")):
        assert "do not have their new names yet" in refused(*words).problem
    with pytest.raises(StorageError, match="do not have their new names yet"):
        load_run("runs.db", 1)


def test_a_removed_sweep_takes_along_the_folders_that_were_not_moved_yet(folder, killed_after_the_commit):
    typed("rm", "grid", "--runs", "--yes")
    assert not [path for path in (folder / "runs.files").iterdir() if path.is_dir()]


@pytest.mark.long
def test_a_checkpoint_goes_on_bit_exactly(own_kernel, terminal):
    """Half of the training under the former word, the rest under the new one; no step differs."""
    grid = own_kernel / "grid.yaml"
    grid.write_text(grid.read_text().replace("steps: 2", "steps: 600, validate_every: 50, record_every: 1"))
    home = terminal
    home.folder = own_kernel
    reference = home.type("kdx sweep grid.yaml --db whole.db")
    assert reference.returncode == 0, reference.stderr
    stopped = home.start("sweep", "grid.yaml")
    from waiting import wait_until

    def far() -> bool:
        try:
            return home.runs()[0].progress_step > 60
        except Exception:
            return False

    wait_until(far)
    stopped.terminate()
    assert stopped.wait(300) == 143
    (before,) = home.runs()
    moved(own_kernel)
    migrated = home.type(f"kdx db migrate-cells {RENAME}")
    assert migrated.returncode == 0, migrated.stderr
    resumed = home.type("kdx sweep grid.yaml")
    assert resumed.returncode == 0, resumed.stderr
    with (
        open_database(own_kernel / "runs.db", write=False) as one,
        open_database(own_kernel / "whole.db", write=False) as whole,
    ):
        (run,), (other,) = reading.load_sweep(one).runs, reading.load_sweep(whole).runs
        second = reading.attempts(one, run.id)[-1]
        assert 0 < second.resumed_step == before.progress_step and second.changes is None
        for metric in ("train/loss", "valid/loss", "test/loss"):
            assert reading.curve(one, run.id, metric) == reading.curve(whole, other.id, metric)


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch):
    monkeypatch.setattr(running, "run_plan", lambda *_, **__: 0)
