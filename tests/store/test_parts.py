"""Sources are kept once, with the plan that uses them."""

from kdx.grid.load import load_grid
from kdx.store.check import check
from kdx.store.parts import load_parts
from kdx.store.recording import register


def test_a_plan_is_registered_with_the_sources_of_its_parts(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    (sha256,) = plan.cells[0].spec.parts.values()
    assert load_parts(database, [sha256]) == {}
    register(database, plan, plan.grid)
    found = load_parts(database, [sha256, "0" * 64])[sha256]
    assert found.sources == {name: (own_kernel / name).read_text() for name in ("my_kernels.py", "helpers.py")}
    assert found.package == "" and check(database).faults == ()


def test_a_source_that_is_there_stays_as_it_was(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan, plan.grid)
    file = own_kernel / "my_kernels.py"
    file.write_text("# a comment\n" + file.read_text())
    again = load_grid(own_kernel / "grid.yaml")
    register(database, again, again.grid)
    (sha256,) = again.cells[0].spec.parts.values()
    assert "# a comment" not in load_parts(database, [sha256])[sha256].sources["my_kernels.py"]
