"""A metric that is added later scores the translations that runs kept, without their weights."""

import shutil
from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from kdx.data.corpus import load_corpus
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.report.selection.evaluated import evaluated_cells
from kdx.store import evaluations, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.plan_from_records import plan_of
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.plan_forecast import changed_evaluations
from kdx.sweep.supervisor import Supervisor
from kdx.vocabulary import Split
from tests.sweep.heard import Heard

GRID = """
name: kept
task: translation
data: {corpus: synthetic-translation, train_lines: 200}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: 20, batch_tokens: 400, warmup: 5, validate_every: 20, learning_rate: 1e-2}
"""
METRICS = "evaluations:\n  chrF: {metric: chrf}\n  TER: {metric: ter}\n  beam: {beam: 2}\n"
OWN = "evaluations: {own: {metric: 'own.py:Words'}}\n"
WORDS = """
from kdx.metrics.interfaces import OutputMetric

class Words(OutputMetric):
    \"\"\"Words of the lines.\"\"\"
    name = "words"
    better = "min"
    scale = "ratio"

    def score(self, lines, references):
        return float(sum(len(line.split()) for line in lines))
"""


def planned(folder: Path, text: str) -> Plan:
    (folder / "grid.yaml").write_text(text)
    return load_grid(folder / "grid.yaml")


def ran(database: Database, text: str, *, trains: bool = True) -> Heard:
    plan, heard = planned(database.location.parent, text), Heard()
    recording.register(database, plan)
    Supervisor(lambda: (plan,), database, 1, heard, ForkServer(), trains=trains).run()
    return heard


@pytest.fixture
def trained(tmp_path, data_home):
    """A database with one run, whose weights are gone."""
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        ran(database, GRID)
        shutil.rmtree(tmp_path / "runs.files")
        yield database


def test_metrics_are_those_of_sacrebleu_and_need_no_weights(trained):
    plan = planned(trained.location.parent, GRID + METRICS)
    (decision,) = decisions_in(trained, plan)
    assert decision.action is Action.EVALUATE
    assert decision.reason.endswith("2 evaluations to make, 1 evaluation not made: its weights are gone")
    ran(trained, GRID + METRICS, trains=False)
    lines = reading.outputs_of(trained, [1], "test/translations")[1]
    (cell,) = plan.cells
    references = list(load_corpus("translation", cell.spec.data).splits[Split.TEST].references)
    made = {
        name: value for each in evaluations.of_runs(trained, [1])[1].values() for name, value in each.metrics.items()
    }
    assert made == {
        "chrf": CHRF().corpus_score(lines, [references]).score,
        "ter": TER().corpus_score(lines, [references]).score,
    }
    of_table = {each.evaluation.request.name: each for each in evaluated_cells(reading.load_sweep(trained))}
    assert {name: each.metrics for name, each in of_table.items()} == {
        "chrF": {1: {"test/chrf": made["chrf"]}},
        "TER": {1: {"test/ter": made["ter"]}},
        "beam": {},
    }
    (decision,) = decisions_in(trained, plan)
    assert decision.action is Action.SKIP


def test_a_custom_metric_is_another_one_once_its_source_changes(trained):
    folder = trained.location.parent
    (folder / "own.py").write_text(WORDS)
    ran(trained, GRID + OWN, trains=False)
    first = evaluations.of_runs(trained, [1])[1]
    (folder / "own.py").write_text(WORDS.replace("float(sum", "2 * float(sum"))
    ran(trained, GRID + OWN, trains=False)
    both = evaluations.of_runs(trained, [1])[1]
    ((old, once),) = first.items()
    (new,) = both.keys() - {old}
    assert both[new].metrics == {"own.py:Words": 2 * once.metrics["own.py:Words"]}
    (folder / "own.py").write_text("# a comment\n" + WORDS)
    (evaluation,) = planned(folder, GRID + OWN).evaluations_of(plan_of(reading.load_sweep(trained)).cells[0].id)
    assert evaluation.id == old


def test_a_metric_of_kdx_is_stale_once_its_code_has_changed(trained, monkeypatch):
    ran(trained, GRID + METRICS, trains=False)
    plan = planned(trained.location.parent, GRID + METRICS)
    asked, made = plan.evaluations_of(plan.cells[0].id), evaluations.of_runs(trained, [1])[1]
    assert changed_evaluations(asked, made) == {}
    chrf = next(each for each in asked if each.metric == "chrf")
    made[chrf.id].provenance.modules["kdx.metrics.chrf"] = "of other code"
    assert changed_evaluations(asked, made) == {chrf.id: ("kdx.metrics.chrf",)}
