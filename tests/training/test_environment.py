"""The record of what a run ran on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kdx
from kdx.axes import Precision
from kdx.training.environment import code_fingerprint, commit, environment


def test_the_environment_is_plain_data_and_follows_the_thread_count():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = environment(Precision.FP32)
        torch.set_num_threads(2)
        two = environment(Precision.FP32)
    finally:
        torch.set_num_threads(threads)
    assert json.loads(json.dumps(one)) == one
    assert one | {"threads": 2, "canary": two["canary"]} == two
    assert one["torch"] == torch.__version__ and one["kdx"] == kdx.__version__


def test_the_commit_of_a_checkout_is_told_and_whether_files_differ(tmp_path):
    def git(*words: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *author, *words], check=True, capture_output=True, text=True
        ).stdout

    assert commit.__wrapped__(tmp_path) is None
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    head = git("rev-parse", "HEAD").strip()
    assert commit.__wrapped__(tmp_path) == head
    (tmp_path / "file").write_text("two")
    assert commit.__wrapped__(tmp_path) == f"{head}-dirty"
    assert "commit" in environment(Precision.FP32)


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    """Of a copy of the sources after a change to it."""
    copy = tmp_path / "kdx"
    shutil.copytree(Path(kdx.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kdx, "__file__", str(copy / "__init__.py"))

    def after(change=lambda root: None) -> str:
        change(copy)
        return code_fingerprint.__wrapped__()

    return after


def test_the_code_has_the_same_fingerprint_in_every_process_and_place(fingerprint):
    script = "from kdx.training.environment import code_fingerprint; print(code_fingerprint())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == code_fingerprint() == fingerprint()


@pytest.mark.parametrize(
    "place", ["attention/smoother.py", "models/language.py", "training/run.py", "data/batching.py"]
)
def test_code_that_decides_numbers_is_in_the_fingerprint(place, fingerprint):
    assert fingerprint(lambda root: (root / place).write_text("# changed\n")) != code_fingerprint()


def test_other_code_is_not(fingerprint):
    assert fingerprint(lambda root: (root / "report" / "text.py").write_text("# changed\n")) == code_fingerprint()


def test_a_file_moved_or_added_changes_it(fingerprint):
    assert fingerprint(lambda root: (root / "data" / "added.py").touch()) != code_fingerprint()
