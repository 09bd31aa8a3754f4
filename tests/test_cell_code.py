"""What an edit of kdx's own sources makes stale, and what it leaves as it was."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

import kdx
from kdx.cell_code import code_of
from kdx.errors import DatabaseError
from kdx.grid.spec import CellSpec
from kdx.store.database import open_database

CELLS = {
    "rbf": {"task": "prediction", "kernel": "rbf", "data": {"corpus": "synthetic-language"}},
    "exponential": {"task": "prediction", "data": {"corpus": "synthetic-language"}},
    "relative": {"task": "translation", "position": "relative", "data": {"corpus": "synthetic-translation"}},
    "product": {"task": "translation", "position": "product", "data": {"corpus": "multi30k"}},
    "strided": {"task": "prediction", "filter": {"decoder-self": "strided"}, "data": {"corpus": "wikitext2"}},
    "convolution": {"task": "translation", "mixer": "convolution", "data": {"corpus": "multi30k"}},
    "set": {"task": "set", "data": {"corpus": "synthetic-sets"}},
    "image": {"task": "image", "position": "product", "data": {"corpus": "synthetic-images"}},
}
STATEMENT = "_EDITED = 1\n"
A_KERNEL = '''
from kdx.attention.interfaces import KernelFunction


class Cauchy(KernelFunction):
    """Heavy-tailed."""

    def weight(self, query, key):
        return 1 / (1 + (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1))
'''
A_TASK = "from kdx.training.examples.set import SetModule\nclass Mine(SetModule): pass\n"


def change(path: str, *, insert: str = "", old: str = "", new: str = ""):
    """An edit of one file: a text at its end, or one text for another."""

    def edit(root: Path) -> None:
        text = (root / path).read_text() if (root / path).exists() else ""
        assert old in text
        (root / path).write_text((text.replace(old, new, 1) if old else text) + insert)

    return edit


def in_the_table(axis: str, name: str, address: str, base: str):
    """A new name, as `make words` adds it."""
    copied = {"bases": [base], "title": "New", "facts": {"name": name}, "options": {}}

    def edit(root: Path) -> None:
        file = root / "words" / "table.json"
        table = json.loads(file.read_text())
        table["names"][axis][name] = address
        table["classes"][address] = copied
        file.write_text(json.dumps(table))

    return edit


def both(*edits):
    return lambda root: [edit(root) for edit in edits]


# What is edited, and how → the cells whose code it changes.
EDITS = {
    "a comment in rbf.py": (change("attention/kernels/rbf.py", insert="# nothing\n"), set()),
    "a statement in rbf.py": (change("attention/kernels/rbf.py", insert=STATEMENT), {"rbf"}),
    # The encodings of rows and columns in an image are sinusoids, too.
    "a statement in sinusoidal.py": (
        change("attention/encodings/sinusoidal.py", insert=STATEMENT),
        {"relative", "product", "image"},
    ),
    "a statement in convolution.py": (change("attention/mixers/convolution.py", insert=STATEMENT), {"convolution"}),
    "a statement in the model of sets": (change("models/set.py", insert=STATEMENT), {"set"}),
    "a statement in a generated corpus": (
        change("data/corpora/synthetic_language.py", insert=STATEMENT),
        {"rbf", "exponential"},
    ),
    "a statement in a corpus that is prepared": (change("data/corpora/multi30k.py", insert=STATEMENT), set()),
    "a statement in a rule of the grid": (change("grid/rules/task.py", insert=STATEMENT), set()),
    "a statement in where positions act": (change("grid/placement.py", insert=STATEMENT), set(CELLS)),
    "a statement in the smoother": (change("attention/smoother.py", insert=STATEMENT), set(CELLS)),
    "a statement in the trainer": (change("training/run.py", insert=STATEMENT), set(CELLS)),
    "a new kernel": (
        both(
            change("attention/kernels/cauchy.py", insert=A_KERNEL),
            in_the_table(
                "kernel",
                "cauchy",
                "kdx.attention.kernels.cauchy:Cauchy",
                "kdx.attention.interfaces:KernelFunction",
            ),
        ),
        set(),
    ),
    "a new corpus": (
        both(
            change("data/corpora/mine.py", insert="from kdx.data.corpora.synthetic_sets import EXAMPLES\n"),
            change(
                "tasks/corpora.py",
                old='        "multi30k":',
                new='        "mine": "kdx.data.corpora.mine:EXAMPLES",\n        "multi30k":',
            ),
        ),
        set(),
    ),
    "a new task": (
        both(
            change("training/examples/mine.py", insert=A_TASK),
            in_the_table("task", "mine", "kdx.training.examples.mine:Mine", "kdx.training.examples.set:SetModule"),
        ),
        set(),
    ),
}
FINGERPRINTS = """
import json, sys
from kdx.cell_code import code_of
from kdx.grid.spec import CellSpec
from kdx.store.database import open_database
cells = json.load(sys.stdin)
print(json.dumps({name: code_of(CellSpec.model_validate(cell)).sha256 for name, cell in cells.items()}))
assert "torch" not in sys.modules
"""


def fingerprints(root: Path) -> dict[str, str]:
    """Return the fingerprint of every cell, as the kdx in `root` computes it."""
    run = [sys.executable, "-c", FINGERPRINTS]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{root.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    told = json.dumps(CELLS)
    done = subprocess.run(run, input=told, capture_output=True, text=True, env=environment, cwd=root.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def sources(tmp_path) -> Path:
    """A copy of the package."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(Path(kdx.__file__).parent, tmp_path / "kdx", ignore=ignored))


@pytest.fixture(scope="module")
def before(tmp_path_factory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("before") / "kdx"
    shutil.copytree(Path(kdx.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    return fingerprints(root)


@pytest.mark.slow
@pytest.mark.parametrize("what", EDITS)
def test_an_edit_changes_the_code_of_the_cells_that_use_it_and_of_no_others(what, sources, before):
    edit, stale = EDITS[what]
    edit(sources)
    after = fingerprints(sources)
    assert {name for name in CELLS if after[name] != before[name]} == stale


def test_the_code_of_a_cell_is_the_same_in_every_process(before):
    assert before == {name: code_of(CellSpec.model_validate(cell)).sha256 for name, cell in CELLS.items()}


def test_what_is_imported_for_types_alone_does_not_count():
    modules = code_of(CellSpec.model_validate(CELLS["rbf"])).modules
    assert not [name for name in modules if name.startswith(("kdx.report", "kdx.store", "kdx.cli", "kdx.sweep"))]
    assert "kdx.attention.kernels.rbf" in modules and "kdx.attention.kernels.linear" not in modules


GRID = """
name: grown
task: prediction
position: product
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 1000000, batch_tokens: 256, length: 16, warmup: 5, validate_every: 4000, threads: 1}
"""


def run_kdx(sources: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(sources.parent)}
    run = [sys.executable, "-m", "kdx", *arguments]
    return subprocess.Popen(run, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def attempts(folder: Path) -> list[tuple]:
    with open_database(folder / "runs.db", write=False) as database:
        return list(database.query("SELECT number, resumed_step, changes FROM attempt ORDER BY number"))


def progress(folder: Path) -> int:
    try:
        with open_database(folder / "runs.db", write=False) as database:
            return next(iter(database.query("SELECT max(progress_step) FROM run")))[0] or 0
    except DatabaseError:  # it is just being made, or locked
        return 0


def resumed_at(folder: Path) -> int | None:
    """The step from which the second attempt went on."""
    with contextlib.suppress(DatabaseError):  # it is locked
        return dict(enumerate(attempts(folder))).get(1, (2, None))[1]
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "goes_on"),
    [("a new kernel", True), pytest.param("a statement in the smoother", False, marks=pytest.mark.long)],
)
def test_an_interrupted_sweep_goes_on_after_a_kernel_was_added_and_not_after_its_code_has_changed(
    what, goes_on, sources, tmp_path
):
    (tmp_path / "grid.yaml").write_text(GRID)
    sweep = run_kdx(sources, tmp_path, "sweep", "grid.yaml")
    wait_until(lambda: (tmp_path / "runs.db").exists() and progress(tmp_path) > 20)
    sweep.send_signal(signal.SIGINT)
    _, said = sweep.communicate(timeout=300)
    assert sweep.returncode == 130, said
    EDITS[what][0](sources)
    resume = run_kdx(sources, tmp_path, "resume")
    if goes_on:
        wait_until(lambda: resumed_at(tmp_path) is not None)
        resume.send_signal(signal.SIGINT)
    _, said = resume.communicate(timeout=300)
    assert ("under other conditions: code kdx.attention.smoother" in said) is not goes_on, said
    assert resume.returncode == (130 if goes_on else 5), said
    if goes_on:
        _, (_, resumed_step, changed) = attempts(tmp_path)
        assert resumed_step > 20 and changed is None
