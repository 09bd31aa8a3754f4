"""Approximate randomisation of BLEU: whether two systems would differ on other sentences of the same kind as well.

The test is that of Riezler & Maxwell [2005]: if the systems do not differ, each sentence's two translations could
as well have come the other way round. Unlike the bootstrap that sacrebleu offers beside it, whose p-value is nearly
one-sided, it rejects a true null as often as it says. It says nothing about other seeds: each system is the one run
that was selected.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import Cell
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.store.records import SweepRecord

TRIALS = 5000
"""The number of exchanges, with which the standard error of a p-value of 0.05 is 0.003."""
_SAME = 1e-6
"""Largest difference in BLEU between what a run recorded and what its translations give here."""


@dataclass(frozen=True)
class Randomisation:
    """A system compared with another over exchanges of their translations."""

    gain: float
    """BLEU minus that of the other."""
    p: float
    """The two-sided p-value of no difference."""
    trials: int
    sentences: int
    signature: str
    """The signature of sacrebleu."""


def randomise(
    layout: Layout,
    differences: Sequence[Difference],
    *,
    sweep: SweepRecord,
    lines: Mapping[int, Sequence[str]],
    references: Callable[[Data], Sequence[str]],
) -> dict[Address, Randomisation]:
    """Place → a randomisation for each difference of BLEU whose two selected runs have translations.

    Args:
        lines: run id → its translations of the test split.
        references: returns the references of a test split; called only for the splits that are needed.

    Raises:
        KdxError: a corpus is not here, or is not the one that the runs were tested on; and whatever `references`
            raises.
    """

    def signature_of(run: int) -> str:
        """The signature of sacrebleu, as the run recorded it."""
        return (sweep.provenance[run].definitions or {}).get("test/bleu", "")

    places: dict[int, dict[int, list[Address]]] = {}
    cells: dict[int, Cell] = {}
    for difference in differences:
        cell, other = layout.places[difference.at], layout.places[difference.against]
        run, other_run = cell.run_id, other.run_id
        # The kept translations are those of the test, and an evaluation made others.
        if layout.evaluations or difference.metric.name != "bleu" or run not in lines or other_run not in lines:
            continue
        assert run is not None and other_run is not None
        if signature_of(run) == signature_of(other_run):
            cells |= {run: cell, other_run: other}
            places.setdefault(other_run, {}).setdefault(run, []).append(difference.at)
    randomisations: dict[Address, Randomisation] = {}
    for baseline, compared in places.items():
        expected = references(Data.model_validate(layout.records[cells[baseline].id].spec.value("data")))
        systems = {run: lines[run] for run in (baseline, *compared)}
        for run, translations in systems.items():
            recorded, computed = cells[run].score, score(translations, expected, signature_of(baseline))
            if recorded is None or abs(computed - recorded) > _SAME:
                raise KdxError(
                    f"the translations of run {run} score {computed:.2f} BLEU against the references here, "
                    f"{'nothing' if recorded is None else f'{recorded:.2f}'} was recorded",
                    hint="prepare the corpus that it was tested on",
                )
        results = paired_randomisation(systems, baseline, expected, signature_of(baseline))
        randomisations |= {at: results[run] for run, addresses in compared.items() for at in addresses}
    return randomisations


def bleu_of(signature: str) -> Any:
    """The scorer for a recorded signature, such as `…|case:mixed|eff:no|tok:none|smooth:exp|…`.

    Raises:
        KdxError: the signature is not one of sacrebleu's BLEU.
    """
    # late: sacreBLEU takes 0.06 s to import, and few tables need it
    from sacrebleu.metrics.bleu import BLEU

    fields = dict(part.partition(":")[::2] for part in signature.rpartition(" ")[2].split("|"))
    if not {"case", "eff", "tok", "smooth"} <= fields.keys():
        raise KdxError(f"`{signature}` is no signature of BLEU")
    smooth, _, value = fields["smooth"].partition("[")
    return BLEU(
        lowercase=fields["case"] == "lc",
        tokenize=fields["tok"],
        smooth_method=smooth,
        smooth_value=float(value.rstrip("]")) if value else None,
        effective_order=fields["eff"] == "yes",
        force=True,
    )


def score(lines: Sequence[str], references: Sequence[str], signature: str) -> float:
    """BLEU of whole translations.

    Raises:
        KdxError: the signature is not one of BLEU, or the numbers of lines and references differ.
    """
    if len(lines) != len(references):
        raise KdxError(f"{len(lines)} translations, but {len(references)} references")
    return float(bleu_of(signature).corpus_score(list(lines), [list(references)]).score)


def paired_randomisation(
    systems: Mapping[Any, Sequence[str]], baseline: Any, references: Sequence[str], signature: str
) -> dict[Any, Randomisation]:
    """Compares every system with `baseline` over `TRIALS` exchanges with a fixed seed.

    Args:
        systems: name → translations, the baseline's among them.
    """
    from sacrebleu.significance import PairedTest

    metric = bleu_of(signature)
    names = [baseline, *(name for name in systems if name != baseline)]
    named: list[tuple[str, Sequence[str]]] = [(str(index), list(systems[name])) for index, name in enumerate(names)]
    test = PairedTest(named, {"BLEU": metric}, [list(references)], test_type="ar", n_samples=TRIALS)
    _, results = test()
    bleu: list[Any] = results["BLEU"]
    return {
        name: Randomisation(
            gain=result.score - bleu[0].score,
            p=result.p_value,
            trials=TRIALS,
            sentences=len(references),
            signature=str(metric.get_signature()),
        )
        for name, result in zip(names[1:], bleu[1:], strict=True)
    }
