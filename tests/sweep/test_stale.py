"""A result is stale where the code that it was computed with has changed since."""

from kdx.cell_code import code_of, evaluation_code_of
from kdx.grid.load import load_grid
from kdx.store.records import EvaluationRecord, Provenance
from kdx.sweep.stale import changed_evaluations, changed_modules


def test_the_modules_that_differ_are_named_gone_and_new_ones_too():
    spec = load_grid("quickstart").cells[0].spec
    now = dict(code_of(spec).modules)
    assert changed_modules(spec, now) == ()
    kernel, other, *_ = now
    before = {name: sha256 for name, sha256 in now.items() if name != other} | {kernel: "0" * 64, "kdx.gone": "1" * 64}
    assert changed_modules(spec, before) == tuple(sorted([kernel, other, "kdx.gone"]))


def test_of_a_run_that_recorded_no_modules_nobody_knows():
    assert changed_modules(load_grid("quickstart").cells[0].spec, None) == ()


def test_code_that_a_cell_does_not_use_makes_it_not_stale():
    cells = load_grid("quickstart").cells
    exponential = next(cell.spec for cell in cells if cell.spec.kernel == "exponential")
    rbf = next(cell.spec for cell in cells if cell.spec.kernel == "rbf" and cell.spec.task == exponential.task)
    only = code_of(rbf).modules.keys() - code_of(exponential).modules.keys()
    assert "kdx.attention.kernels.rbf" in only
    assert changed_modules(exponential, code_of(exponential).modules) == ()


def test_an_evaluation_is_stale_by_its_own_code_and_not_by_that_of_the_training():
    spec = load_grid("quickstart").cells[0].spec
    now = dict(evaluation_code_of(spec).modules)
    evaluation = "kdx.training.evaluation"
    assert evaluation in now.keys() - code_of(spec).modules.keys()
    modules = {"same": now, "other": now | {evaluation: "0" * 64}, "nobody asks": {}}
    made = {
        key: EvaluationRecord(
            key, {}, 0.0, None, {}, None, {}, None, Provenance(None, None, {}, {}, modules=its_modules)
        )
        for key, its_modules in modules.items()
    }
    assert changed_evaluations(spec, ["same", "other", "not made"], made) == {"other": (evaluation,)}
    assert changed_evaluations(spec, ["same"], {}) == {}
