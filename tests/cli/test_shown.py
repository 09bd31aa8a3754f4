"""What `kdx show` says in the same words of runs, cells and sweeps."""

from looked_after import DB, completed, planned, shown, typed

from kdx.store import recording
from kdx.store.database import open_database


def test_what_people_said_of_a_run_is_shown_with_it_its_cell_and_its_sweep():
    first, *_ = planned(2)
    completed(first)
    typed("invalidate", str(first.id), "--why", "the corpus was cut")
    typed("note", str(first.id), "look again", "--tag", "odd")
    typed("note", "tiny", "before the cut", "--tag", "baseline")
    sweep = typed("show", "tiny").stdout
    with open_database(DB, write=True) as database:
        (again,) = recording.repeat(database, [first.id])
    run, cell = (typed("show", word).stdout for word in (str(first.id), first.cell_id))
    for text in (run, cell):
        assert "the corpus was cut" in text and "odd" in text and "look again (" in text
    assert f"run {again} is a newer generation" in run
    assert "newer generation" not in typed("show", str(again)).stdout
    assert f"run {first.id} (the corpus was cut)" in sweep
    assert "baseline" in sweep and "before the cut (" in sweep
    found = shown(str(first.id))
    assert (found["invalidated"], found["tags"], found["newer"]) == ("the corpus was cut", ["odd"], again)
    assert [note["text"] for note in found["notes"]] == ["look again"]
    assert shown(str(again))["newer"] is None and shown(str(again))["invalidated"] is None
    by_id = {run["run"]: run for run in shown(first.cell_id)["runs"]}
    assert (by_id[first.id]["invalidated"], by_id[first.id]["tags"]) == ("the corpus was cut", ["odd"])
    assert (shown("tiny")["tags"], [note["text"] for note in shown("tiny")["notes"]]) == (
        ["baseline"],
        ["before the cut"],
    )
