"""What `kdx show` shows of a cell, and of the trials of a search."""

from looked_after import learned, of_two_kernels, shown, typed
from trial import trial

from kdx.cli.shown_cell import trial_lines
from kdx.grid.tuning import DrawnRange, Pruner, Sampler, Search, Tuning
from kdx.report.selection.searched import searched
from kdx.report.statistics.metric import Metric
from kdx.store.records import SearchRecord, TrialState
from kdx.tasks import TASKS

RATE = "training.learning_rate"


def test_a_cell_has_its_seeds_and_the_selected_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = of_two_kernels()
    cell = runs[0].cell_id
    mine = [run for run in runs if run.cell_id == cell]
    for run, loss in zip(mine, (6.0, 4.0), strict=True):
        learned(run, loss)
    found = shown(cell[:6])
    assert found["cell"] == cell and found["selected"] == mine[1].id
    assert [(run["seed"], run["valid_score"]) for run in found["runs"]] == [(0, 3.0), (1, 2.0)]
    text = typed("show", cell[:6]).stdout
    assert f"selected  run {mine[1].id}, by valid/loss" in text
    assert [run["run"] for run in shown(cell, "seed=1")["runs"]] == [mine[1].id]


def test_the_best_trial_the_cell_itself_and_what_is_not_found_yet_are_marked():
    settings = '{"task": "translation", "data": {"corpus": "synthetic-translation"}}'
    search = Search(
        "0" * 32,
        settings,
        {RATE: DrawnRange(low=1e-4, high=1e-2, log=True)},
        Tuning(trials=3, sampler=Sampler.TPE, pruner=Pruner.MEDIAN),
    )
    trials = (
        trial(0, {RATE: 1e-3}, "a" * 32, TrialState.PRUNED, 1.0),
        trial(1, {RATE: 9.5e-3}, "b" * 32, TrialState.COMPLETED, 12.34567),
        trial(2, {RATE: 2e-3}, None, TrialState.FAILED, None),
    )
    cell = searched(
        SearchRecord(search.id, 0, {"kernel": "rbf"}, search.plain, trials),
        Metric("valid/bleu", TASKS.definition("translation").metrics["bleu"]),
    )
    first, head, pruned, best, failed, edge = (line.rstrip() for line in trial_lines(cell, "a" * 32))
    assert first.endswith("of rbf: 3 of 3 trials have ended; sampler tpe, pruner median, tuning seeds 1000000")
    assert head.split() == ["trial", "cell", "state", "valid/bleu", RATE]
    assert pruned.split() == ["0", "a" * 8, "pruned", "1.00", "0.001", "this", "cell"]
    assert best.split() == ["1", "b" * 8, "completed", "12.35", "0.0095", "the", "best"]
    assert failed.split()[:3] == ["2", "none", "failed"]
    assert edge.strip() == f"{RATE} 0.0095 at the upper edge: not found yet, try 0.01 to 0.1"
