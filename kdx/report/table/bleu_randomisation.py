"""Randomisation tests of BLEU for the differences of a table, on the translations of the selected runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.grid.table_layout import Address
from kdx.report.statistics.randomisation import Randomisation, paired_randomisation, score
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.store.records import SweepRecord

_SAME = 1e-6
"""Largest difference in BLEU between what a run recorded and what its translations give here."""


@dataclass(frozen=True)
class Translated:
    """A run's test translations, with the references and the signature to score them."""

    lines: Sequence[str]
    references: Sequence[str]
    signature: str
    """The signature of sacrebleu, as the run recorded it."""


@dataclass(frozen=True)
class Translations:
    """The test translations of a sweep's selected runs."""

    sweep: SweepRecord
    lines: Mapping[int, Sequence[str]]
    """Run id → its translations of the test split."""
    references: Callable[[Data], Sequence[str]]
    """Returns the references of a test split; called only for the splits that are needed."""

    def randomise(self, layout: Layout, differences: Sequence[Difference]) -> dict[Address, Randomisation]:
        """Place → a randomisation for each difference of BLEU whose two selected runs have translations.

        Raises:
            KdxError: a corpus is not here, or is not the one that the runs were tested on; and whatever `references`
                raises.
        """
        return randomised(layout, differences, self._translated(compared_runs(layout, differences), layout))

    def _translated(self, runs: Mapping[int, str], layout: Layout) -> dict[int, Translated]:
        provenance = self.sweep.provenance
        return {
            run: Translated(
                self.lines[run],
                self.references(Data.model_validate(layout.records[cell].spec.value("data"))),
                (provenance[run].definitions or {}).get("test/bleu", ""),
            )
            for run, cell in runs.items()
            if run in self.lines
        }


def compared_runs(layout: Layout, differences: Sequence[Difference]) -> dict[int, str]:
    """Run id → cell id of the selected runs whose BLEU is compared."""
    runs = {}
    for one in differences:
        for at in (one.at, one.against):
            cell = layout.places[at]
            if one.metric.name == "bleu" and cell.run_id is not None:
                runs[cell.run_id] = cell.id
    return runs


def randomised(
    layout: Layout, differences: Sequence[Difference], translated: Mapping[int, Translated]
) -> dict[Address, Randomisation]:
    """Place → a randomisation for each difference of BLEU whose two selected runs have translations.

    Args:
        translated: by run id.

    Raises:
        KdxError: translations do not give the BLEU that the run recorded, so the references are not those of the run.
    """
    places = layout.places
    wanted: dict[int, dict[int, list[Address]]] = {}
    for one in differences:
        run, other = places[one.at].run_id, places[one.against].run_id
        if one.metric.name == "bleu" and run is not None and other is not None and {run, other} <= translated.keys():
            wanted.setdefault(other, {}).setdefault(run, []).append(one.at)
    scores = {cell.run_id: cell.score for cell in reversed(layout.cells)}
    found: dict[Address, Randomisation] = {}
    for other, runs in wanted.items():
        for run in (other, *runs):
            _check(run, scores[run], translated[run])
        baseline = translated[other]
        of_one_kind = {run: translated[run].lines for run in runs if translated[run].signature == baseline.signature}
        if not of_one_kind:
            continue
        systems = {other: baseline.lines, **of_one_kind}
        results = paired_randomisation(systems, other, baseline.references, baseline.signature)
        found |= {at: results[run] for run in of_one_kind for at in runs[run]}
    return found


def _check(run: int, recorded: float | None, translated: Translated) -> None:
    computed = score(translated.lines, translated.references, translated.signature)
    if recorded is None or abs(computed - recorded) > _SAME:
        raise KdxError(
            f"the translations of run {run} score {computed:.2f} BLEU against the references here, "
            f"{'nothing' if recorded is None else f'{recorded:.2f}'} was recorded",
            hint="prepare the corpus that it was tested on",
        )
