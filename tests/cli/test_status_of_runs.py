"""How far the runs of a sweep are."""

import json

from looked_after import completed, failed, planned, refused, typed


def test_a_sweep_is_shown_run_by_run_and_chosen_by_words():
    first, second, third = planned(3)
    completed(first, score=2.5)
    failed(second, "no room")
    lines = typed("status", "tiny").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", str(first.id), str(second.id), str(third.id)]
    assert lines[0].endswith("  loss") and "completed" in lines[1] and "2.500" in lines[1].split()
    assert "failed" in lines[2] and lines[2].endswith("no room")
    chosen = json.loads(typed("status", "tiny", "state=failed", "seed=1", "--json").stdout)
    assert [run["run"] for run in chosen["runs"]] == [second.id]
    assert typed("status", "tiny", "state=failed").stderr.endswith(
        f"1 failed; see why with: kdx logs {second.id}; next: kdx retry tiny state=failed\n"
    )


def test_what_chooses_nothing_is_refused_with_what_was_meant():
    planned(2)
    assert refused("status", "tinny").hint == "did you mean `tiny`?"
    assert refused("status", "tiny", "stat=failed").problem == "unknown key `stat` in `stat=failed`"
    error = refused("status", "tiny", "state=pendin")
    assert error.problem == "`pendin` is no state" and error.hint == "did you mean `pending`?"
    assert refused("status", "tiny", "failed").problem == "`failed` chooses nothing"
