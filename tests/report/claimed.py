"""Claims about kernels, and what runs made by hand say of them."""

from math import sqrt

import numpy as np
from sweeps import cell, run, seeded, sweep

from kdx.report.papers.paper_file import Claim, Contrast, Rule
from kdx.report.papers.verdicts import Answer, ContrastOutcome, SettingVerdict, Verdict, answers
from kdx.store.records import CellRecord, RunRecord, RunState

HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.CANNOT_TELL
UNTESTED = Verdict.NOT_TESTED


RBF, EXP = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0]


KERNELS = ("rbf", "exponential", "polynomial", "linear")


PRODUCT, SUM = {"position": "product"}, {"position": "direct-sum"}
LOSS = {"select": {"metric": "loss"}}


def contrast(a: str = "rbf", b: str = "exponential", expect: str = "better", **rest: object) -> Contrast:
    """Kernel a against kernel b."""
    return Contrast.model_validate({"a": {"kernel": a}, "b": {"kernel": b}, "expect": expect, **rest})


def claim(*parts: Contrast | Rule, any: bool = False, **rest: object) -> Claim:
    quantifier = "any" if any else "all"
    return Claim.model_validate(
        {"id": "id", "statement": "It works.", "holds": Rule(**{quantifier: parts or (contrast(),)}), **rest}
    )


def kernels(
    *scores: list[float], task: str = "translation", **choices: object
) -> tuple[list[CellRecord], list[RunRecord]]:
    """A cell for each list of scores, of seeds 0, 1, …; the kernels come in the order of `KERNELS`."""
    used = list(zip(KERNELS, scores, strict=False))
    tail = "".join(str(word) for word in choices.values())
    tail += "" if task == "translation" else task
    return (
        [cell(kernel + tail, task, kernel=kernel, **choices) for kernel, _ in used],
        [each for kernel, values in used for each in seeded(kernel + tail, *values)],
    )


Records = tuple[list[CellRecord], list[RunRecord]]


def joined(*parts: Records) -> Records:
    return [each for cells, _ in parts for each in cells], [each for _, runs in parts for each in runs]


def answer_of(stated: Claim, cells: list[CellRecord], runs: list[RunRecord]) -> Answer:
    return answers([stated], [sweep(cells, runs)])[0]


def finding(stated: Claim, cells: list[CellRecord], runs: list[RunRecord]) -> SettingVerdict:
    """Of a claim in the one setting there is."""
    (setting,) = answer_of(stated, cells, runs).settings
    return setting


def only(compared: Contrast, *scores: list[float], **choices: object) -> ContrastOutcome:
    """The outcome of a claim of one contrast in one setting."""
    (outcome,) = finding(claim(compared), *kernels(*scores, **choices)).outcomes
    return outcome


def diverged(kernel: str, seeds: int, total: int | None = None, score: float = 1.0) -> list[RunRecord]:
    """Of so many seeds of a cell the first ones diverged."""
    total = seeds if total is None else total
    first = 100 * (1 + KERNELS.index(kernel))
    return [
        run(kernel, seed, state=RunState.DIVERGED, id=first + seed)
        if seed < seeds
        else run(kernel, seed, score, score, id=first + seed)
        for seed in range(total)
    ]


def of_runs(expect: str, a: list[RunRecord], b: list[RunRecord], **rest: object) -> ContrastOutcome:
    cells, _ = kernels([], [])
    (outcome,) = finding(claim(contrast(expect=expect, **rest)), cells, [*a, *b]).outcomes
    return outcome


def welch(parts: list[tuple[float, list[float]]]) -> tuple[float, float, float]:
    """Value, standard error and degrees of freedom of a weighted sum of means, each with its own spread."""
    variances = np.array([weight**2 * np.var(values, ddof=1) / len(values) for weight, values in parts])
    df = [
        (len(values) - 1) * variances.sum() / variance for variance, (_, values) in zip(variances, parts, strict=True)
    ]
    return sum(weight * np.mean(values) for weight, values in parts), sqrt(variances.sum()), min(df)


def of_choices(
    a: dict[str, object], b: dict[str, object], *rest: dict[str, object], task: str = "translation"
) -> SettingVerdict:
    """What is found of a cell with the choices of a, far better than that of b and others that have b's words too."""
    sides = {"a": a, "b": b, "expect": "better"}
    cells = [cell(f"c{index}", task, **each) for index, each in enumerate((a, b, *rest))]
    worse = 0.1 if task == "translation" else 10.0
    runs = [*seeded("c0", 30.0, 30.1, 30.2)]
    runs += [each for other in cells[1:] for each in seeded(other.id, *(worse * x for x in (30.0, 30.1, 30.2)))]
    return finding(claim(Contrast.model_validate(sides)), cells, runs)


def known() -> Records:
    """rbf is far over exponential, which is as good as polynomial; there is no linear one."""
    return kernels([30.0, 31.1, 32.0], [20.0, 21.0, 22.1], [20.1, 20.9, 22.0])


PARTS = {
    HOLDS: contrast(),
    FAILS: contrast("exponential", "rbf"),
    UNKNOWN: contrast("exponential", "polynomial"),
    UNTESTED: contrast("rbf", "linear"),
}
