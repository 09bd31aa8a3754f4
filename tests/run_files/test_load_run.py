"""A trained model comes back as it was tested."""

import hashlib
import os
import pickle
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial

import numpy
import pytest
import torch

import kdx
from kdx.errors import KdxError, StorageError
from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, folder_of
from kdx.run_files.load_run import load_run
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.sweep.recorder import DatabaseRecorder
from kdx.tasks import TASKS as EVERY_TASK
from kdx.training.run import train
from kdx.training.stopping import StopRequest
from kdx.vocabulary import Split

GRID = """
name: looked into
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: 6, warmup: 3, learning_rate: 1e-2, validate_every: 3}
tasks:
  translation:
    data: {corpus: synthetic-translation, train_lines: 300, dictionaries: separate}
    model: {embeddings: separate}
    training: {batch_tokens: 1024, average: 2}
    select: {metric: loss}
    position: product
  prediction:
    data: {corpus: synthetic-language, train_lines: 300}
    training: {batch_tokens: 256, length: 16}
    position: relative
  set:
    data: {corpus: synthetic-sets, train_examples: 200}
    training: {batch_tokens: 256}
seeds: 2
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def database(tmp_path_factory, home):
    """Of each task's two seeds one was trained."""
    folder = tmp_path_factory.mktemp("load")
    (folder / "grid.yaml").write_text(GRID)
    plan = load_grid(folder / "grid.yaml")
    specs = {cell.id: cell.spec for cell in plan.cells}
    with open_database(folder / "runs.db", write=True, create=True) as opened:
        for run in reading.runs(opened, recording.register(opened, plan)):
            if run.seed:
                continue
            attempt = claims.claim(opened, run.id, "me", 600)
            hand = recording.RunWriter(opened, run.id, "me", attempt)
            here, there = socket.socketpair()
            with here, there:
                recorder = DatabaseRecorder(hand, run.id, here)
                where = files_beside(opened.location) / folder_of(run)
                done = train(specs[run.cell_id], 0, folder=where, recorder=recorder, stop=StopRequest(), home=home)
                scores = done.valid_score, done.valid_step, done.test_score
                recorder.write(done.step, partial(hand.complete, *scores, done.definitions, done.step))
    return folder / "runs.db"


def ids(database) -> dict[str, int]:
    """Task → its completed run."""
    with open_database(database, write=False) as opened:
        sweep = reading.load_sweep(opened)
    task = {cell.id: cell.spec.task for cell in sweep.cells}
    return {task[run.cell_id]: run.id for run in sweep.runs if run.seed == 0}


TASKS = pytest.mark.parametrize("task", ["translation", "prediction", "set"])


def evaluation_of(run):
    """A module around the model, and the batches of the test."""
    corpus = run.corpus
    task = EVERY_TASK[run.spec.task]
    module, batches = task.of(run.spec, corpus), task.batches(run.spec, corpus, 0)
    module.model = run.model
    return module.eval(), batches.evaluation[Split.TEST]


@TASKS
def test_its_test_score_is_the_recorded_one(database, home, task):
    run = load_run(database, ids(database)[task], home=home)
    assert (run.record.seed, run.spec.task, run.model.training) == (0, task, False)
    module, batches = evaluation_of(run)
    with torch.no_grad():
        module.on_test_epoch_start()
        for index, batch in enumerate(batches):
            module.test_step(batch, index)
        module.on_test_epoch_end()
    score = module.results[run.spec.selection[0].removeprefix("valid/")]
    assert score == pytest.approx(run.record.test_score, rel=1e-6)


def inputs_of(run, batch):
    if run.spec.task == "translation":
        return (batch.source, batch.source_padding, batch.target_in), {}
    return ((batch.inputs,), {}) if run.spec.task == "prediction" else ((), batch.inputs)


@TASKS
def test_attention_is_there_for_every_layer_and_its_rows_sum_to_one(database, home, task):
    run = load_run(database, ids(database)[task], home=home)
    arguments, named = inputs_of(run, evaluation_of(run)[1][0])
    attention = run.attention(*arguments, **named)
    assert len(attention) == {"translation": 3, "prediction": 1, "set": 1}[task]
    for name, weights in attention.items():
        assert weights.dim() == 4 and not weights.requires_grad
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5), name


def test_maps_of_attention_name_their_rows_and_columns(database, home):
    run = load_run(database, ids(database)["translation"], home=home)
    line = run.corpus.source_vocabulary.decode([4, 5, 4])
    maps = {name: (queries, keys, weights) for name, queries, keys, weights in run.attention_maps(line)}
    source = [*line.split(), "(end)"]
    target = ["(begin)", *run.translate(line)[0].split()]
    sides = {name: (queries, keys) for name, (queries, keys, _) in maps.items()}
    assert sides == {
        "encoder.layers.0.self_attention": (source, source),
        "decoder.layers.0.self_attention": (target, target),
        "decoder.layers.0.cross_attention": (target, source),
    }
    for queries, keys, weights in maps.values():
        assert weights.shape == (2, len(queries), len(keys))
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)
    ((_, queries, keys, _),) = load_run(database, ids(database)["prediction"], home=home).attention_maps("the cat")
    assert queries == keys and len(keys) == 3


def test_no_text_has_no_perplexity(database, home):
    run = load_run(database, ids(database)["prediction"], home=home)
    with pytest.raises(KdxError, match="a text without a line has no perplexity"):
        run.perplexity([])
    assert run.perplexity("the cat") == run.perplexity(["the cat"]) == run.perplexity(("the cat",)) > 1


def test_maps_of_attention_are_of_short_lines_and_of_tasks_that_read_text(database, home):
    with pytest.raises(KdxError, match="the line has 50 tokens"):
        list(load_run(database, ids(database)["prediction"], home=home).attention_maps("the " * 49))
    with pytest.raises(KdxError, match="task set reads no text"):
        list(load_run(database, ids(database)["set"], home=home).attention_maps("the"))


def test_without_its_text_a_model_comes_back_alone(database, home, tmp_path, monkeypatch):
    def gone(*_):
        raise KdxError("the text is not here")

    monkeypatch.setattr("kdx.run_files.load_run.load_corpus", gone)
    run = load_run(database, ids(database)["translation"], home=tmp_path)
    assert run.corpus is None
    monkeypatch.undo()
    whole = load_run(database, ids(database)["translation"], home=home)
    assert run.model.state_dict().keys() == whole.model.state_dict().keys()


def test_another_text_than_it_learned_from_is_not_given(database, home, monkeypatch):
    monkeypatch.setattr("kdx.run_files.load_run.load_corpus", lambda *_: type("Other", (), {"fingerprint": "other"}))
    assert load_run(database, ids(database)["prediction"], home=home).corpus is None


def refusal(database, run) -> KdxError:
    with pytest.raises(KdxError) as caught:
        load_run(database, run)
    return caught.value


def test_what_is_not_there_is_told(database, tmp_path):
    assert refusal(database, 99).problem == "there is no run 99"
    pending = ids(database)["prediction"] + 3
    assert refusal(database, pending).problem == f"run {pending}, which is pending, has no weights that were tested"
    assert refusal(tmp_path / "absent.db", 1).exit_code == 3


def test_damaged_weights_and_those_of_another_model_are_told(database, monkeypatch):
    run = ids(database)["prediction"]
    with monkeypatch.context() as patch:
        patch.setattr("kdx.training.prediction.LanguageModel", lambda *_: torch.nn.Linear(1, 1))
        assert "do not fit the model that this kdx builds" in refusal(database, run).problem
    (path,) = (path for path in files_beside(database).rglob("best-*") if path.parent.name == _folder(database, run))
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        fault = refusal(database, run)
        assert isinstance(fault, StorageError) and fault.problem == "this file does not match its checksum"
        assert path.exists()
    finally:
        path.write_bytes(content)


def test_a_pickle_in_the_place_of_weights_is_told_with_its_file_and_not_run(database, tmp_path, monkeypatch, figure):
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "runs.db"
    shutil.copyfile(database, copy)
    shutil.copytree(files_beside(database), files_beside(copy))
    run = ids(copy)["prediction"]
    (path,) = (path for path in files_beside(copy).rglob("best-*") if path.parent.name == _folder(copy, run))
    content = pickle.dumps(Hostile())
    planted = path.with_name(f"best-000000006.{hashlib.sha256(content).hexdigest()}.ckpt")
    path.rename(planted)
    planted.write_bytes(content)
    fault = refusal(copy, run)
    assert (fault.place, fault.problem) == (
        str(planted),
        "this file holds no weights that kdx wrote, and nothing in it was run",
    )
    assert not (tmp_path / "executed").exists()
    figure(fault.problem)


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def _folder(database, run: int) -> str:
    with open_database(database, write=False) as opened:
        return folder_of(reading.load_run(opened, run))


def test_a_run_with_a_word_of_another_kdx_is_refused(database, tmp_path, reword):
    copy = tmp_path / "runs.db"
    shutil.copyfile(database, copy)
    shutil.copytree(files_beside(database), files_beside(copy))
    with closing(sqlite3.connect(copy)) as connection, connection:
        run, cell = connection.execute("SELECT id, cell_id FROM run WHERE state = 'completed' LIMIT 1").fetchone()
        reword(connection, lambda cell: cell.update(kernel="mine"))
        (other,) = connection.execute("SELECT cell_id FROM run WHERE id = ?", (run,)).fetchone()
    for folder in files_beside(copy).glob(f"{cell}-*"):
        folder.rename(folder.with_name(folder.name.replace(cell, other)))
    with pytest.raises(KdxError, match="has what this kdx does not know: kernel `mine`"):
        load_run(copy, run)


def test_it_is_at_hand_as_kdx_load_run_and_importing_kdx_loads_nothing(database, home, monkeypatch):
    monkeypatch.setenv("KDX_DATA", str(home))
    monkeypatch.setenv("KDX_DB", str(database))
    run = kdx.load_run(numpy.int64(ids(database)["set"]), home=str(home))
    assert run.record.seed == 0 and repr(run).endswith(f"parameters, run {run.record.id}, seed 0>")
    code = "import sys, kdx; print([m for m in ('torch', 'sqlalchemy', 'pydantic', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
