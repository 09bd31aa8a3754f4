"""Approximate randomisation of BLEU: whether two systems would differ on other sentences of the same kind as well.

The test is that of Riezler & Maxwell [2005]: if the systems do not differ, each sentence's two translations could
as well have come the other way round. Unlike the bootstrap that sacrebleu offers beside it, whose p-value is nearly
one-sided, it rejects a true null as often as it says. It says nothing about other seeds: each system is the one run
that was selected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.errors import KdxError

TRIALS = 5000
"""With so many exchanges the standard error of a p-value of 0.05 is 0.003."""


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
