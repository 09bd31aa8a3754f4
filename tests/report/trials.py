"""A table whose cells were searched for."""

from dataclasses import replace

import sweeps
from trial import trial

from kdx.grid.tuning import Choice, DrawnRange, Pruner, Sampler, Search, Tuning
from kdx.report.tables import Table, tables
from kdx.store.records import SearchRecord, TrialState

RATE, DROPOUT = "training.learning_rate", "model.dropout"
SPACE = {RATE: DrawnRange(low=1e-4, high=1e-2, log=True), DROPOUT: Choice((0.0, 0.1, 0.3))}
TRIALS = [(1e-3, 0.1, 10.0), (9.5e-3, 0.0, 20.0), (2e-3, 0.3, 15.0)]


def search(kernel: str, *, total: int = 3, seeds: tuple[int, ...] = (1_000_000,), **how) -> SearchRecord:
    """A search whose best trial is its second."""
    settings = f'{{"task": "translation", "kernel": "{kernel}", "data": {{"corpus": "synthetic-translation"}}}}'
    tuning = Tuning(
        trials=total, sampler=how.get("sampler", Sampler.RANDOM), pruner=how.get("pruner", Pruner.NONE), seeds=seeds
    )
    planned = Search(kernel.ljust(32, "0"), settings, how.get("space", SPACE), tuning)
    trials = tuple(
        trial(number, {RATE: rate, DROPOUT: dropout}, f"{kernel}{number}", TrialState.COMPLETED, score)
        for number, (rate, dropout, score) in enumerate(TRIALS)
    )
    return SearchRecord(planned.id, 0, {"kernel": kernel}, planned.plain, trials)


def table(*searches: SearchRecord, plain: tuple[str, ...] = (), seeds: int = 2) -> Table:
    """A row for the winner of each search, and for cells that were not searched for."""
    kernels = {search.labels["kernel"]: f"{search.labels['kernel']}1" for search in searches} | {
        kernel: kernel for kernel in plain
    }
    won = {"training": {"learning_rate": 9.5e-3}, "model": {"dropout": 0.0}}
    cells = [
        sweeps.cell(id, kernel=kernel, labels={"kernel": kernel}, **({} if kernel in plain else won))
        for kernel, id in kernels.items()
    ]
    runs = [run for id in kernels.values() for run in sweeps.seeded(id, *range(10, 10 + seeds))]
    sweep = sweeps.sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}])
    return tables(replace(sweep, searches=searches))[0]
