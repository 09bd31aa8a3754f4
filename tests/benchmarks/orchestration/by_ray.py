"""Ray Tune's grid search over seeds on two processors."""

import sys
from pathlib import Path

import ray
from ray import tune

from tests.benchmarks.orchestration.one_run import one_run


def trainable(config: dict[str, int]) -> None:
    """Run once."""
    tune.report({"loss": one_run(config["seed"])})


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=str(Path("ray").absolute()))
    folder = Path("results").absolute()
    seeds = tune.grid_search(list(range(int(sys.argv[1]))))
    if tune.Tuner.can_restore(str(folder / "peers")):
        tuner = tune.Tuner.restore(str(folder / "peers"), trainable, resume_unfinished=True)
    else:
        where = tune.RunConfig(storage_path=str(folder), name="peers", verbose=0)
        tuner = tune.Tuner(tune.with_resources(trainable, {"cpu": 1}), param_space={"seed": seeds}, run_config=where)
    tuner.fit()
