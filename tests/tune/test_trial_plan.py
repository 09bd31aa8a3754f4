"""The plan of a search: runs of trials and no others."""

import subprocess
import sys

from kdx.grid.plan import PlannedRun
from kdx.tune.trial_plan import TrialPlan
from tests.tune.searched import plan_of


def test_it_has_the_runs_that_may_begin_and_no_others(tmp_path):
    cells = plan_of(tmp_path).cells
    asked = (PlannedRun(cells[1], 5), PlannedRun(cells[0], 7))
    plan = TrialPlan("s", cells, (5, 7), asked=asked)
    assert plan.runs == asked


def test_a_template_is_not_trained(tmp_path):
    plan = plan_of(tmp_path)
    assert plan.searched and plan.runs == () and plan.trained == ()


def test_a_sweep_that_searches_nothing_loads_no_optuna():
    program = "import kdx.sweep.supervisor, kdx.tune.search, sys; sys.exit('optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
