"""What kdx gives a user is what the golden set holds: numbers, weights, tables, claims, plans, resumed runs, vectors.

A change that is meant is written by `make golden`, and its diff read. Bits and what depends on every bit, such as which
of two seeds is the better, compare where this machine computes with the bits of the one that wrote the set: where the
canary, which every run records of its arithmetic, is the same. Elsewhere numbers of short runs compare within `LOOSE`.
"""

import difflib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden import produce
from tests.golden.vectors import vectors as all_vectors

SAME = 1e-6
"""Relative difference of numbers where bits are the same: they are written with seven digits."""
LOOSE, COARSE = 2e-3, 1e-2
"""Elsewhere, of losses and perplexities, and of what is taken over a slice or of entropies. With the instructions of
another processor (ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE) the largest differences are 6e-4 and 3e-3."""
VECTOR = 1e-9
COUNTED = ("bleu", "accuracy", "macro_f1", "exact_match", "length_ratio")
"""Metrics that count what is right, so that they jump where one number passes another; by 1e-2 there."""
MOST_LINES = 40


def stored(name: str) -> Any:
    text = (produce.FOLDER / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


class Made:
    """What this kdx makes, each sweep on its first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._databases: dict[str, Path] = {}
        self._runs: dict[str, dict[str, Any]] = {}
        self._canaries: dict[str, str] = {}

    def database(self, sweep: str) -> Path:
        if sweep not in self._databases:
            self._databases[sweep] = produce.SWEEPS[sweep](self.folder)
        return self._databases[sweep]

    def runs(self, sweep: str) -> dict[str, Any]:
        if sweep not in self._runs:
            self._runs[sweep] = produce.runs(self.database(sweep))
        return self._runs[sweep]

    def same_bits(self, sweep: str) -> bool:
        """Whether this machine computes with the bits of the one that wrote the set."""
        if sweep not in self._canaries:
            self._canaries[sweep] = produce.conditions(self.database(sweep))["canary"]
        return bool(self._canaries[sweep] == stored("conditions.json")["canary"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("golden"))


def differences(expected: Any, actual: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Where two values of JSON differ, a line each; numbers by more than the tolerance, relative to the larger."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            at = f"{place} / {key}" if place else key
            if key not in actual:
                yield f"{at}: {expected[key]!r} → missing"
            elif key not in expected:
                yield f"{at}: new, {actual[key]!r}"
            else:
                yield from differences(expected[key], actual[key], tolerance, at)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (before, now) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(before, now, tolerance, f"{place}[{index}]")
    elif not _same(expected, actual, tolerance):
        yield f"{place}: {expected!r} → {actual!r}"


def _same(expected: Any, actual: Any, tolerance: float) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        equal = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
        return equal or (math.isnan(expected) and math.isnan(actual))
    return type(expected) is type(actual) and bool(expected == actual)


def check(expected: Any, actual: Any, tolerance: float = SAME) -> None:
    """Fail with a line for each difference."""
    if isinstance(expected, str):
        lines = list(
            difflib.unified_diff(expected.splitlines(), actual.splitlines(), "golden", "now", lineterm="", n=1)
        )
    else:
        lines = list(differences(expected, actual, tolerance))
    rest = [f"… and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    message = "\n".join(lines[:MOST_LINES] + rest)
    assert not lines, f"not what the golden set holds; if it is meant to change: make golden\n{message}"


def _recorded(runs: dict[str, Any]) -> Any:
    """As the file has them."""
    return json.loads(produce.as_json(runs))


def check_roughly(expected: dict[str, Any], actual: dict[str, Any]) -> None:
    """Compare two runs, or two evaluations, in what does not depend on single bits."""

    def chosen(values: dict[str, Any], keep: Callable[[str], bool]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if keep(name)}

    for keep, tolerance in ((_smooth, LOOSE), (_coarse, COARSE)):
        check(chosen(expected["metrics"], keep), chosen(actual["metrics"], keep), tolerance)
    for name in ("state", "step", "settings", "error"):
        check(expected.get(name), actual.get(name))
    for name, evaluation in expected.get("evaluations", {}).items():
        check_roughly(evaluation, actual["evaluations"][name])


def _smooth(name: str) -> bool:
    return not _coarse(name) and not any(counted in name for counted in COUNTED)


def _coarse(name: str) -> bool:
    return ("=" in name or "entropy" in name) and not any(counted in name for counted in COUNTED)


RUNS = [pytest.param(name, run, id=f"{name}: {run}") for name in produce.SWEEPS for run in stored(f"{name}.json")]


@pytest.mark.slow
@pytest.mark.parametrize(("sweep", "run"), RUNS)
def test_numbers_and_weights(made: Made, sweep: str, run: str) -> None:
    expected, actual = stored(f"{sweep}.json")[run], _recorded(made.runs(sweep)[run])
    if made.same_bits(sweep):
        check(expected, actual)
    elif expected["state"] == "diverged":
        pytest.skip("a run that diverges goes another way where bits differ")
    else:
        check_roughly(expected, actual)


@pytest.mark.slow
@pytest.mark.parametrize("sweep", produce.SWEEPS)
def test_the_runs_of_a_sweep(made: Made, sweep: str) -> None:
    check(list(stored(f"{sweep}.json")), list(made.runs(sweep)))


def only_with_the_same_bits(made: Made, sweep: str) -> None:
    if not made.same_bits(sweep):
        pytest.skip("this machine computes with other bits, so that another seed may be the better one")


def as_stored(name: str, text: str) -> Any:
    return json.loads(text) if name.endswith(".json") else text


@pytest.mark.slow
@pytest.mark.parametrize("suffix", produce.LIVE_REPORTS)
def test_tables_of_quickstart(made: Made, suffix: str) -> None:
    only_with_the_same_bits(made, "quickstart")
    name = f"quickstart-report.{suffix}"
    check(stored(name), as_stored(name, produce.report(made.database("quickstart"), suffix)))


@pytest.mark.slow
def test_table_of_all_tasks(made: Made) -> None:
    only_with_the_same_bits(made, "tasks")
    check(stored("tasks-report.txt"), produce.report(made.database("tasks"), "txt"))


@pytest.mark.slow
def test_claims_on_a_small_sweep(made: Made) -> None:
    only_with_the_same_bits(made, "quickstart")
    check(stored("quickstart-claims.json"), _recorded(produce.verdicts(made.database("quickstart"))))


@pytest.mark.parametrize("suffix", produce.REPORTS)
def test_tables_of_the_example(tmp_path: Path, suffix: str) -> None:
    name = f"example-report.{suffix}"
    check(stored(name), as_stored(name, produce.report(produce.copied_example(tmp_path), suffix)))


def test_claims_on_the_example(tmp_path: Path) -> None:
    check(stored("example-claims.json"), _recorded(produce.claims(produce.copied_example(tmp_path))))


def test_plans_of_the_shipped_grids() -> None:
    check(stored("plans.json"), _recorded(produce.plans()))


def test_complete_settings_of_some_cells() -> None:
    check(stored("settings.json"), _recorded(produce.first_settings()))


@pytest.mark.slow
def test_killed_and_resumed_runs_end_with_the_same_bits(made: Made) -> None:
    whole = made.runs("resume")
    database, (interrupted, killed) = produce.break_and_resume(made.folder)
    starts = produce.first_steps(database)
    first = interrupted.index(max(interrupted))
    assert starts[first][:2] == [0, interrupted[first]], "it did not resume from the checkpoint of the interruption"
    assert 0 < starts[first][2] <= killed[first], "it did not resume from a checkpoint after the kill"
    check(whole, produce.runs(database), tolerance=0.0)


@pytest.mark.parametrize("path", ["fused", "literal"])
@pytest.mark.parametrize("family", [*stored("vectors.json")])
def test_vectors(vectors: dict[str, Any], family: str, path: str) -> None:
    check(stored("vectors.json")[family], vectors[path].get(family, {}), VECTOR)


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    return {path: all_vectors(path) for path in ("fused", "literal")}


def test_every_name_has_a_vector(tmp_path: Path) -> None:
    for family in produce.FAMILIES:
        cases = {case.partition(",")[0] for case in stored("vectors.json")[family]}
        assert set(produce.names_of(tmp_path, family)) <= cases, family
