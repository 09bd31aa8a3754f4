"""A plan with searches, and what ends its runs as if they were trained."""

import random
from pathlib import Path

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedRun
from kdx.store import claims, reading, recording
from kdx.store.database import Database
from kdx.tune.pruning import Judge
from kdx.tune.search import Searching

GRID = """\
name: tuned
task: translation
data: {corpus: synthetic-translation}
training: {steps: 40, warmup: 10, validate_every: 10, record_every: 10}
axes: {kernel: [exponential, rbf]}
tune:
  parameters:
    training.learning_rate: {low: 1e-4, high: 1e-1, log: true}
    model.dropout: [0.0, 0.1]
  sampler: SAMPLER
  pruner: PRUNER
  seeds: SEEDS
  trials: 10
"""


def plan_of(folder: Path, sampler: str = "random", pruner: str = "none", seeds: int = 1) -> Plan:
    file = folder / "grid.yaml"
    text = GRID.replace("SAMPLER", sampler).replace("PRUNER", pruner).replace("SEEDS", str(seeds))
    file.write_text(text)
    return load_grid(file)


def score(rate: float, seed: int, step: int) -> float:
    """BLEU that rises with the steps, the best at a learning rate of 0.003."""
    return step / (1 + abs(rate / 0.003 - 1)) + seed % 10 / 100


def train(database: Database, run: PlannedRun) -> None:
    """What a worker does of a run of a trial, without its arithmetic."""
    record = reading.recorded(database, [run.cell.id])[run.key]
    attempt = claims.claim(database, record.id, "me", 60)
    writer = recording.RunWriter(database, record.id, "me", attempt)
    rate, reason, steps = run.cell.spec.training.learning_rate, None, []
    judge = Judge(run.rivals, {}) if run.rivals else None
    for step in (10, 20, 30, 40):
        value = score(rate, run.seed, step)
        writer.record([("valid/bleu", step, value)], step)
        steps.append(value)
        if judge and step < 40 and (reason := judge.why_pruned(step, value)):
            writer.prune(reason, step, max(steps), step, {})
            return
    writer.complete(max(steps), 40, None, {}, 40)


def search(database: Database, plan: Plan, order: random.Random, kills: float = 0.0) -> Searching:
    """Searches to the end; runs end in any order, and now and then the search is killed and begun again."""
    recording.register(database, plan)
    found = Searching(database, plan)
    while True:
        trials = found.advance()
        if found.done:
            return found
        train(database, order.choice(trials.runs))
        if order.random() < kills:
            found = Searching(database, plan)
            found.look()  # as the command does when it begins again
