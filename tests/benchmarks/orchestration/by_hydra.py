"""Hydra's multirun over seeds; its launcher decides on processes. The result of each run is a file in its folder."""

from pathlib import Path

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from tests.benchmarks.orchestration.one_run import one_run

ConfigStore.instance().store("config", {"seed": 0})


@hydra.main(version_base=None, config_name="config")  # type: ignore[untyped-decorator]
def main(config: DictConfig) -> None:
    """Run once."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    (folder / "result.txt").write_text(f"{config.seed} {one_run(config.seed)}\n")


if __name__ == "__main__":
    main()
