"""The randomisation of BLEU for the differences of a table, from the translations of the selected runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdx.errors import KdxError
from kdx.report.statistics.randomisation import Randomisation, paired_randomisation, score
from kdx.report.table.comparisons import Difference
from kdx.report.table.table import Table

_SAME = 1e-6
"""BLEU points between what a run recorded and what its translations give here."""


@dataclass(frozen=True)
class Translated:
    """A run's test translations, and what they are scored with."""

    lines: Sequence[str]
    references: Sequence[str]
    signature: str
    """Of sacrebleu, as the run recorded it."""


def compared(tables: Iterable[Table]) -> dict[int, str]:
    """Run id → cell id, of the selected runs whose BLEU a table compares."""
    runs = {}
    for table in tables:
        for one in table.differences:
            for at in (one.at, one.against):
                cell = table.places[at]
                if one.metric.name == "bleu" and cell.run_id is not None:
                    runs[cell.run_id] = cell.id
    return runs


def randomised(table: Table, translated: Mapping[int, Translated]) -> Table:
    """The table with a randomisation in each difference of BLEU whose two selected runs have translations.

    Raises:
        KdxError: translations do not give the BLEU that the run recorded, so these are not its references.
    """
    places = table.places
    wanted: dict[int, dict[int, list[Difference]]] = {}
    for one in table.differences:
        run, other = places[one.at].run_id, places[one.against].run_id
        if one.metric.name == "bleu" and run is not None and other is not None and {run, other} <= translated.keys():
            wanted.setdefault(other, {}).setdefault(run, []).append(one)
    found: dict[int, Randomisation] = {}
    for other, runs in wanted.items():
        for run in (other, *runs):
            recorded = next(cell.score for cell in table.cells if cell.run_id == run)
            _check(run, recorded, translated[run])
        baseline = translated[other]
        alike = {run: translated[run].lines for run in runs if translated[run].signature == baseline.signature}
        if not alike:
            continue
        systems = {other: baseline.lines, **alike}
        results = paired_randomisation(systems, other, baseline.references, baseline.signature)
        found |= {id(one): results[run] for run in alike for one in runs[run]}
    differences = tuple(replace(one, randomisation=found.get(id(one))) for one in table.differences)
    return replace(table, differences=differences)


def _check(run: int, recorded: float | None, its: Translated) -> None:
    here = score(its.lines, its.references, its.signature)
    if recorded is None or abs(here - recorded) > _SAME:
        raise KdxError(
            f"the translations of run {run} score {here:.2f} BLEU against the references here, "
            f"{'nothing' if recorded is None else f'{recorded:.2f}'} was recorded",
            hint="prepare the corpus that it was tested on",
        )
