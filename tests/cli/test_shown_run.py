"""What `kdx show` says of a run."""

from pathlib import Path

import yaml
from looked_after import DB, completed, learned, of_two_kernels, planned, shown, typed

from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import NOTE


def test_a_run_has_its_settings_scores_attempts_place_files_and_log():
    first, *_ = of_two_kernels()
    learned(first, 6.0)
    text = typed("show", str(first.id)).stdout
    lines = text.splitlines()
    assert lines[0] == f"run {first.id}: rbf · seed 0, completed"
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1 : lines.index("")]}
    assert facts["cell"] == first.cell_id and facts["sweeps"] == "tiny" and facts["step"] == "10 of 10"
    assert facts["scores"] == "valid/loss 3.000 at step 10, test/loss 2.000"
    assert facts["ran"] == "on  host here, torch 2.13" and facts["files"] == "log.txt (7 bytes)"
    assert Path(facts["log"]).read_text() == "step 1\n"
    assert "process" in text and " here" in text
    settings = yaml.safe_load(text.partition("settings, of which vary: kernel, temperature\n")[2])
    assert next(iter(settings)) == "kernel" and settings["training"]["steps"] == 10
    found = shown(str(first.id))
    assert (found["run"], found["state"], found["metrics"]) == (first.id, "completed", {"test/loss": 2.0})
    assert found["settings"]["kernel"] == "rbf" and found["varies"] == ["kernel", "temperature"]
    assert found["sweeps"] == [{"sweep": "tiny", "choices": {"kernel": "rbf"}}]
    (attempt,) = found["attempts"]
    assert attempt["outcome"] == "completed" and attempt["machine"] and attempt["process"]
    assert found["files"] == [{"name": "log.txt", "kind": "log", "bytes": 7}] and found["log"] == facts["log"]


def test_a_run_that_never_began_says_no_more_than_there_is():
    first, *_ = planned(1)
    found = shown(str(first.id))
    assert (found["state"], found["attempts"], found["files"], found["log"]) == ("pending", [], [], None)
    assert "log" not in typed("show", str(first.id)).stdout.partition("\n\n")[0].replace("of 10", "")


def test_nothing_is_shown_of_the_files_of_another_database():
    (first,) = planned(1)
    completed(first)
    folder = files_beside(DB)
    (folder / NOTE).write_text("f" * 32)
    assert shown(str(first.id))["files"] == []
