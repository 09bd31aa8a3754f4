"""Optuna with a grid of seeds, in one process or several that share a study in SQLite."""

import multiprocessing
import sys

import optuna

from tests.benchmarks.orchestration.one_run import one_run

STORAGE = "sqlite:///study.db"


def work(runs: int) -> None:
    """Work on the study until its grid is done."""
    sampler = optuna.samplers.GridSampler({"seed": list(range(runs))})
    study = optuna.create_study(storage=STORAGE, study_name="peers", sampler=sampler, load_if_exists=True)
    study.optimize(lambda trial: one_run(trial.suggest_int("seed", 0, runs - 1)))


if __name__ == "__main__":
    runs, processes = map(int, sys.argv[1:3])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(storage=STORAGE, study_name="peers", load_if_exists=True)
    started = [multiprocessing.get_context("fork").Process(target=work, args=(runs,)) for _ in range(processes - 1)]
    for process in started:
        process.start()
    work(runs)
    for process in started:
        process.join()
