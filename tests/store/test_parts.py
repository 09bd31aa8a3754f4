"""Sources are kept once, with the plan that uses them."""

from kdx.components.component import LARGEST
from kdx.grid.load import load_grid
from kdx.store.check import check
from kdx.store.parts import hashes_of, load_parts
from kdx.store.recording import register
from kdx.store.schema import part


def test_a_plan_is_registered_with_the_sources_of_its_parts(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    (sha256,) = plan.cells[0].spec.parts.values()
    assert load_parts(database, [sha256]) == {}
    register(database, plan, plan.grid)
    found = load_parts(database, [sha256, "0" * 64])[sha256]
    assert found.sources == {name: (own_kernel / name).read_text() for name in ("my_kernels.py", "helpers.py")}
    assert found.package == "" and check(database).faults == ()


def test_a_sweep_has_the_components_of_its_cells_and_of_its_searches(database, own_kernel):
    def words(file: str, text: str) -> set[str]:
        (own_kernel / file).write_text(text)
        plan = load_grid(own_kernel / file)
        return set(hashes_of(database, register(database, plan, plan.grid)))

    grid = (own_kernel / "grid.yaml").read_text()
    tune = "tune: {parameters: {training.learning_rate: [1e-3, 1e-2]}, sampler: grid, trials: 2}\n"
    assert words("grid.yaml", grid) == words("tuned.yaml", grid + tune) == {"my_kernels.py:Cauchy"}
    assert words("plain.yaml", grid.replace("my_kernels.py:Cauchy", "rbf")) == set()


def test_a_source_that_is_there_stays_as_it_was(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan, plan.grid)
    file = own_kernel / "my_kernels.py"
    file.write_text("# a comment\n" + file.read_text())
    again = load_grid(own_kernel / "grid.yaml")
    register(database, again, again.grid)
    (sha256,) = again.cells[0].spec.parts.values()
    assert "# a comment" not in load_parts(database, [sha256])[sha256].sources["my_kernels.py"]


def test_the_largest_source_fits_into_a_database(database, own_kernel):
    file = own_kernel / "my_kernels.py"
    room = LARGEST - sum(len(one.read_bytes()) for one in own_kernel.glob("*.py"))
    file.write_text(file.read_text() + f"# {chr(7) * (room - 2)}")  # of which JSON makes six characters each
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan, plan.grid)
    assert check(database).faults == ()


def test_a_source_that_was_edited_is_found(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan, plan.grid)
    (sha256,) = plan.cells[0].spec.parts.values()
    with database.write() as connection:
        connection.execute(part.update().values(sources={"my_kernels.py": "import os"}))
    assert check(database).faults == (f"the source {sha256} of a component is not what that is the hash of",)
