"""A part that fails stops a sweep before it starts, with one message."""

import subprocess
import sys

import pytest

from kdx.components.registry import components_of
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.sweep.rehearsal import rehearse


def test_a_plan_without_components_starts_no_process(monkeypatch):
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    plan = load_grid("quickstart")
    assert components_of(plan.components) == ()
    rehearse(plan)


@pytest.mark.slow
def test_what_a_component_writes_is_no_answer_and_what_lies_where_the_user_is_does_not_run(own_kernel, monkeypatch):
    helpers = own_kernel / "helpers.py"
    helpers.write_text("import os\nprint('{')\nos.write(1, b'{')\n" + helpers.read_text())
    (own_kernel / "json.py").write_text("raise SystemExit('not asked for')")
    monkeypatch.chdir(own_kernel)
    rehearse(load_grid("grid.yaml"))


@pytest.mark.slow
def test_what_fails_in_the_trial_is_one_message(own_kernel):
    (own_kernel / "helpers.py").write_text("def squared_distance(query, key):\n    return query @ key\n")
    with pytest.raises(KdxError) as caught:
        rehearse(load_grid(own_kernel / "grid.yaml"))
    assert str(caught.value.place) == "helpers.py:2:1"
    assert "`my_kernels.py:Cauchy` fails: RuntimeError" in caught.value.problem


@pytest.mark.slow
def test_a_metric_that_cannot_be_imported_is_told_before_anything_is_trained(tmp_path):
    (tmp_path / "own.py").write_text(
        "import no_such_module\nfrom kdx.metrics.interfaces import OutputMetric\nclass Words(OutputMetric):\n    pass\n"
    )
    (tmp_path / "grid.yaml").write_text(
        "task: translation\ndata: {corpus: synthetic-translation}\nevaluations: {own: {metric: 'own.py:Words'}}\n"
    )
    with pytest.raises(KdxError, match="No module named 'no_such_module'"):
        rehearse(load_grid(tmp_path / "grid.yaml"))


def test_a_trial_that_cannot_be_interrupted_ends_all_the_same(own_kernel, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(own_kernel / "stuck"))
    (own_kernel / "stuck").write_text("#!/bin/sh\nexec sleep 600\n")
    (own_kernel / "stuck").chmod(0o755)
    monkeypatch.setattr("kdx.sweep.rehearsal.IMPORTING", 0)
    with pytest.raises(KdxError, match="does not come to an end"):
        rehearse(load_grid(own_kernel / "grid.yaml"), within=1)
