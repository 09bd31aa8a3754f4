"""Sources are kept once, with the plan that uses them."""

from collections.abc import Mapping

import pytest

from kdx.attention.kernels import KERNELS
from kdx.components.find import LARGEST
from kdx.components.registry import at_hand, components_of
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.store.check import check
from kdx.store.components import hashes_of, load_components
from kdx.store.database import Database
from kdx.store.reading import load_sweep
from kdx.store.recording import register
from kdx.store.schema import component
from kdx.words.component import Component
from tests.conftest import forget_components


def recorded_of(database: Database, hashes: Mapping[str, str]) -> tuple[Component, ...]:
    with database.read() as connection:
        return load_components(connection, hashes)


def test_a_plan_is_registered_with_the_sources_of_its_components(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    hashes = plan.cells[0].spec.components
    assert recorded_of(database, hashes) == ()
    register(database, plan)
    (found,) = recorded_of(database, {**hashes, "other.py:A": "0" * 64})
    assert (found,) == components_of(hashes) and found.recorded
    assert found.sources == {name: (own_kernel / name).read_text() for name in ("my_kernels.py", "helpers.py")}
    assert found.package == "" and check(database).faults == ()


def test_a_sweep_has_the_components_of_its_cells_and_of_its_searches(database, own_kernel):
    def words(file: str, text: str) -> set[str]:
        (own_kernel / file).write_text(text)
        plan = load_grid(own_kernel / file)
        return set(hashes_of(database, register(database, plan)))

    grid = (own_kernel / "grid.yaml").read_text()
    tune = "tune: {parameters: {training.learning_rate: [1e-3, 1e-2]}, sampler: grid, trials: 2}\n"
    assert words("grid.yaml", grid) == words("tuned.yaml", grid + tune) == {"my_kernels.py:Cauchy"}
    assert words("plain.yaml", grid.replace("my_kernels.py:Cauchy", "rbf")) == set()


def test_a_source_that_is_there_stays_as_it_was(database, own_kernel):
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan)
    file = own_kernel / "my_kernels.py"
    file.write_text("# a comment\n" + file.read_text())
    again = load_grid(own_kernel / "grid.yaml")
    register(database, again)
    (found,) = recorded_of(database, again.cells[0].spec.components)
    assert "# a comment" not in found.sources["my_kernels.py"]


def test_the_largest_source_fits_into_a_database(database, own_kernel):
    file = own_kernel / "my_kernels.py"
    room = LARGEST - sum(len(item.read_bytes()) for item in own_kernel.glob("*.py"))
    file.write_text(file.read_text() + f"# {chr(7) * (room - 2)}")  # of which JSON makes six characters each
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan)
    assert check(database).faults == ()


@pytest.mark.parametrize(
    "sources", [{"my_kernels.py": "import os"}, {"my_kernels.py": "("}, {"my_kernels.py": "\\ud800"}, {}]
)
def test_a_source_that_replaced_another_is_found_and_not_returned(database, own_kernel, sources):
    plan = load_grid(own_kernel / "grid.yaml")
    register(database, plan)
    hashes = plan.cells[0].spec.components
    (sha256,) = hashes.values()
    with database.write() as connection:
        connection.execute(component.update().values(sources=sources))
    assert recorded_of(database, hashes) == ()
    assert check(database).faults == (f"the source {sha256} of a component is not what that is the hash of",)


def test_a_sweep_is_read_without_the_file_and_each_with_its_own_version(database, own_kernel):
    """The bounds, defaults and names of options are those of the source that the cells were made with."""
    file = own_kernel / "my_kernels.py"
    grid = (own_kernel / "grid.yaml").read_text()
    for name, option in (("first", "option(1.0, above=0)"), ("second", "option(3.0, above=2)")):
        file.write_text(file.read_text().replace("option(1.0, above=0)", option))
        (own_kernel / "grid.yaml").write_text(f"name: {name}\n{grid}")
        plan = load_grid(own_kernel / "grid.yaml")
        register(database, plan)
    forget_components()
    file.write_text("import absent")
    read = {name: load_sweep(database, name).cells[0].spec for name in ("second", "first")}
    assert {name: spec.known.option("bandwidth") for name, spec in read.items()} == {"second": 3.0, "first": 1.0}
    for name, values in (("first", (1.0, 0.0)), ("second", (3.0, 1.0))):
        valid = [ResolvedSpec({**read[name].plain, "bandwidth": value}).known is not None for value in values]
        assert valid == [True, False]
    assert list(at_hand()) == [] and all(spec.missing_components for spec in read.values())
    with pytest.raises(KdxError, match="known from a database, from which no code is run"):
        KERNELS["my_kernels.py:Cauchy"]
