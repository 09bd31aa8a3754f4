"""Every place of a page has a name of its own, and every link leads to one."""

import re
from collections import Counter
from dataclasses import replace

from sweeps import cell, seeded, sweep

from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, resolve_evaluation
from kdx.report.tables import tables
from kdx.report.writers.html.page import to_html
from kdx.store.records import EvaluationRecord, SweepRecord

ASKED = [{"name": "longer", "settings": {"length": length}} for length in (64, 256)]
TABLES = [
    {"name": "own", "rows": ["kernel"], "columns": []},
    {"name": "lengths", "rows": ["kernel"], "columns": ["evaluation.length"]},
    {"name": "again", "rows": ["evaluation.length"], "columns": ["kernel"], "cell": "mean"},
]


def evaluated() -> SweepRecord:
    """Two cells of two runs each, with two evaluations of every run."""
    records = [cell(name, task="prediction", kernel=name) for name in ("rbf", "exponential")]
    runs = [one for record in records for one in seeded(record.id, 4.0, 5.0)]
    spec = records[0].spec.known
    assert spec
    made: dict[int, dict[str, EvaluationRecord]] = {}
    for asked in ASKED:
        settings = EvaluationSettings.model_validate(asked["settings"])
        one = resolve_evaluation(spec, AskedEvaluation("longer", settings))
        for each in runs:
            numbers = {"loss": 1.0 + each.seed / 10, "perplexity": 4.0 + each.seed}
            kept = EvaluationRecord(one.id, one.settings, 0.0, 9, {}, None, numbers)
            made.setdefault(each.id, {})[one.id] = kept
    record = sweep(records, runs, tables=TABLES)
    return replace(record, grid={**record.grid, "evaluations": ASKED}, evaluations=made)


def test_a_run_has_a_place_for_its_test_and_for_each_of_its_evaluations():
    record = evaluated()
    page = "".join(to_html(tables(record), record, {}))
    ids = Counter(re.findall(r'\sid="([^"]*)"', page))
    assert {name: count for name, count in ids.items() if count > 1} == {}
    assert sum(name.startswith("run-") for name in ids) == 4 * (1 + len(ASKED))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links <= ids.keys()
    # The selected run of each cell and of each of its evaluations, where a table shows single runs.
    assert len({link for link in links if link.startswith("run-")}) >= 2 * (1 + len(ASKED))
