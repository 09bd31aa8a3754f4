"""What the runs say of a claim in each setting."""

import pytest
from claimed import (
    EXP,
    FAILS,
    HOLDS,
    PARTS,
    PRODUCT,
    SUM,
    UNKNOWN,
    UNTESTED,
    Records,
    answer_of,
    claim,
    contrast,
    finding,
    joined,
    kernels,
    known,
    of_choices,
)
from sweeps import cell, seeded, sweep

from kdx.report.papers.paper_file import Claim, Contrast, Rule, load_paper, shipped
from kdx.report.papers.verdicts import Errors, Verdict, answers

GOOD, BAD = ([20.0, 21.1, 22.0], [10.0, 11.0, 12.1]), ([10.0, 11.0, 12.1], [20.0, 21.1, 22.0])


@pytest.mark.parametrize(("scores", "verdict"), [(GOOD, HOLDS), (BAD, FAILS), (([1.0], [2.0]), UNKNOWN)])
def test_each_setting_has_a_verdict_of_its_own(scores: tuple[list[float], ...], verdict: Verdict) -> None:
    """A smoke run neither makes nor unmakes what the runs of another size say."""
    result = answer_of(claim(), *joined(kernels(*GOOD), kernels(*scores, training={"steps": 10}))).settings
    assert [(each.setting["training.steps"], each.verdict) for each in result] == [("1000", HOLDS), ("10", verdict)]
    assert [len(each.outcomes) for each in result] == [1, 1]


def test_all_claims_of_a_paper_have_the_same_words_for_a_setting() -> None:
    """Although but one of them has to tell two settings apart that are alike in what is shown."""
    here, there = kernels(*GOOD, GOOD[1]), kernels(*GOOD, training={"warmup": 7})
    several = answers([claim(), claim(contrast("rbf", "polynomial"))], [sweep(*joined(here, there))])
    of_both, of_one = ([each.setting for each in answer.settings] for answer in several)
    assert [setting["training.warmup"] for setting in of_both] == ["200", "7"] and of_one == of_both[:1]


def test_a_contrast_without_cells_in_a_setting_cannot_be_told_there() -> None:
    values = claim(contrast(), contrast("rbf", "polynomial"))
    here, there = kernels(*GOOD, GOOD[1]), kernels(*GOOD, training={"steps": 10})
    whole, part = answer_of(values, *joined(here, there)).settings
    assert (whole.verdict, part.verdict) == (HOLDS, UNKNOWN)
    assert [(outcome.verdict, outcome.reason) for outcome in part.outcomes] == [
        (HOLDS, ""),
        (UNTESTED, "no such cells"),
    ]


def of_tasks() -> Claim:
    """rbf is better on translation, and in one of two ways on prediction."""
    on_prediction = {"where": {"task": "prediction"}}
    ways = Rule(any=(contrast(**on_prediction), contrast("rbf", "polynomial", **on_prediction)))
    return claim(contrast(where={"task": "translation"}), ways)


def test_what_a_claim_asks_of_another_task_is_left_out() -> None:
    translation, prediction = kernels(*GOOD), kernels(*GOOD, GOOD[0], task="prediction")
    first, second = answer_of(of_tasks(), *joined(translation, prediction)).settings
    assert (first.setting["task"], first.verdict, len(first.outcomes)) == ("translation", HOLDS, 1)
    # Of a perplexity less is better.
    assert (second.setting["task"], second.verdict, len(second.outcomes)) == ("prediction", UNKNOWN, 2)
    assert [outcome.verdict for outcome in second.outcomes] == [FAILS, UNKNOWN]
    alone = finding(of_tasks(), *translation)
    assert alone == first, "whether the other task was trained or not"


def test_the_chances_of_an_error_are_shared_within_a_task() -> None:
    translation, prediction = kernels(*GOOD), kernels(*GOOD, GOOD[0], task="prediction")
    errors = [
        [outcome.errors for outcome in each.outcomes]
        for each in answer_of(of_tasks(), *joined(translation, prediction)).settings
    ]
    assert errors == [[shared(0.05, 0.05)], [shared(0.025, 0.05)] * 2]


def test_a_task_may_be_what_a_side_is_about() -> None:
    sides = {"a": {"task": "translation", "kernel": "rbf"}, "b": {"task": "translation", "kernel": "exponential"}}
    values = claim(Contrast.model_validate({**sides, "expect": "better"}))
    (setting,) = answer_of(values, *joined(kernels(*GOOD), kernels(*BAD, task="prediction"))).settings
    assert setting.verdict is HOLDS


@pytest.mark.parametrize(
    ("a", "b", "task", "confounders"),
    [
        # A look-up has no encoding, and here its placement is another one than the product's.
        (PRODUCT, {"position": "lookup"}, "translation", ("placement",)),
        (PRODUCT, {"position": "relative"}, "prediction", ()),
        (
            {**PRODUCT, "symmetry": "symmetric", "value": "without-position"},
            {**SUM, "symmetry": "asymmetric", "value": "with-position", "inject": "input"},
            "translation",
            ("symmetry", "value"),
        ),
        (
            {**PRODUCT, "value": "without-position", "memory": 8},
            {**SUM, "value": "with-position", "inject": "input", "memory": 0},
            "prediction",
            ("value", "memory"),
        ),
        # The first factor that a names is what it is about.
        (
            {"symmetry": "symmetric", "kernel": "rbf"},
            {"symmetry": "asymmetric", "kernel": "linear"},
            "translation",
            ("kernel",),
        ),
        (
            {"kernel": "rbf", "symmetry": "symmetric"},
            {"symmetry": "asymmetric", "kernel": "linear"},
            "translation",
            ("symmetry",),
        ),
        ({"kernel": "rbf", "norm": "pre"}, {"kernel": "linear", "norm": "pre"}, "translation", ()),
    ],
)
def test_a_claim_that_holds_says_in_what_else_the_sides_differ(
    a: dict[str, object], b: dict[str, object], task: str, confounders: tuple[str, ...]
) -> None:
    verdict = of_choices(a, b, task=task)
    assert (verdict.verdict, verdict.confounders) == (HOLDS, confounders)
    assert verdict.outcomes[0].cells.confounders == confounders
    assert str(verdict) == ("holds, confounded by " + ", ".join(confounders) if confounders else "holds")


def test_a_contrast_that_does_not_decide_confounds_nothing() -> None:
    placed = Contrast.model_validate({"a": PRODUCT, "b": {"position": "lookup"}, "expect": "better"})
    alone = Contrast.model_validate({"a": {"kernel": "rbf"}, "b": {"kernel": "linear"}, "expect": "better"})
    cells = [cell("p", **PRODUCT), cell("l", position="lookup"), cell("r", kernel="rbf"), cell("k", kernel="linear")]
    runs = [*seeded("p", 1.0, 1.1), *seeded("l", 30.0, 30.1), *seeded("r", 30.0, 30.1), *seeded("k", 1.0, 1.1)]
    either = finding(claim(placed, alone, any=True), cells, runs)
    assert (str(either), [each.contrast for each in either.deciding]) == ("holds", [alone])
    assert str(finding(claim(placed, alone), cells, runs)) == "does not hold, confounded by placement"


@pytest.mark.parametrize(
    ("parts", "all_of", "any_of"),
    [
        ((HOLDS,), HOLDS, HOLDS),
        ((FAILS,), FAILS, FAILS),
        ((UNKNOWN,), UNKNOWN, UNKNOWN),
        ((UNTESTED,), UNTESTED, UNTESTED),
        ((UNTESTED, UNTESTED), UNTESTED, UNTESTED),
        ((HOLDS, UNTESTED), UNKNOWN, HOLDS),
        ((UNTESTED, UNKNOWN), UNKNOWN, UNKNOWN),
        ((HOLDS, HOLDS), HOLDS, HOLDS),
        ((HOLDS, FAILS), FAILS, HOLDS),
        ((HOLDS, UNKNOWN), UNKNOWN, HOLDS),
        ((FAILS, UNKNOWN), FAILS, UNKNOWN),
        ((FAILS, FAILS), FAILS, FAILS),
        ((UNKNOWN, FAILS, HOLDS), FAILS, HOLDS),
    ],
)
def test_all_and_any(parts: tuple[Verdict, ...], all_of: Verdict, any_of: Verdict) -> None:
    subject = [PARTS[part] for part in parts]
    assert finding(claim(*subject), *known()).verdict is all_of
    verdict = finding(claim(*subject, any=True), *known())
    assert verdict.verdict is any_of
    assert [outcome.verdict for outcome in verdict.outcomes] == list(parts)


def test_rules_nest() -> None:
    any_of = Rule(any=(PARTS[FAILS], PARTS[HOLDS]))
    assert finding(claim(PARTS[HOLDS], any_of), *known()).verdict is HOLDS
    assert finding(claim(PARTS[UNKNOWN], any_of), *known()).verdict is UNKNOWN
    all_of = Rule(all=(PARTS[HOLDS], PARTS[FAILS]))
    assert finding(claim(all_of, PARTS[FAILS], any=True), *known()).verdict is FAILS


def shared(holds: float, does_not_hold: float) -> Errors:
    return Errors(pytest.approx(holds), pytest.approx(does_not_hold))


def test_parts_that_could_each_bring_a_verdict_about_share_its_five_percent() -> None:
    """Any of several makes `any` hold, and any of several makes `all` not hold."""

    def errors(values: Claim) -> list[Errors]:
        return [outcome.errors for outcome in finding(values, *known()).outcomes]

    first, other = PARTS[HOLDS], PARTS[FAILS]
    assert errors(claim(first)) == errors(claim(first, any=True)) == [shared(0.05, 0.05)]
    assert errors(claim(first, other)) == [shared(0.05, 0.025)] * 2
    assert errors(claim(first, other, any=True)) == [shared(0.025, 0.05)] * 2
    all_of, any_of = Rule(all=(first, other)), Rule(any=(first, other))
    assert errors(claim(all_of, first, any=True)) == [*[shared(0.025, 0.025)] * 2, shared(0.025, 0.05)]
    assert errors(claim(any_of, first, any=True)) == [*[shared(0.0125, 0.05)] * 2, shared(0.025, 0.05)]
    assert errors(claim(all_of, first)) == [*[shared(0.05, 0.0125)] * 2, shared(0.05, 0.025)]
    assert errors(claim(any_of, first)) == [*[shared(0.025, 0.025)] * 2, shared(0.05, 0.025)]


def test_a_claim_needs_as_many_more_seeds_as_decide_its_rule() -> None:
    close = contrast("exponential", "polynomial", expect="equivalent", margin=0.3)
    closer = contrast("exponential", "polynomial", expect="equivalent", margin=0.2)
    far = kernels([40.1, 41.4, 39.8, 40.9], EXP, [29.4, 30.3, 29.7, 30.2])
    verdict = finding(claim(close, closer, PARTS[HOLDS]), *far)
    wanted = [outcome.more for outcome in verdict.outcomes if outcome.verdict is UNKNOWN]
    assert len(wanted) == 2 and None not in wanted and verdict.more == max(each for each in wanted if each)
    least, most = sorted(each for each in wanted if each)
    one_suffices = finding(claim(close, closer, any=True), *far)
    assert {outcome.toward for outcome in one_suffices.outcomes} == {HOLDS} and least <= one_suffices.more < most
    assert finding(claim(close, PARTS[UNTESTED]), *far).more is None


@pytest.mark.parametrize("name", shipped())
def test_the_papers_claims_cannot_be_told_from_nothing(name: str) -> None:
    for values in load_paper(name).claims:
        (setting,) = answers([values], [])[0].settings
        assert setting.verdict is UNTESTED
        assert {outcome.reason for outcome in setting.outcomes} == {"no such cells"}


def test_a_claim_of_the_paper_is_answered_from_runs_that_follow_it() -> None:
    """A2: symmetric kernels are hardly worse, in both tasks, for every kernel."""
    (values,) = (item for item in load_paper("tsai2019").claims if item.id == "A2-symmetry")
    requests = [part for part in values.holds.parts if isinstance(part, Contrast)]

    def sweep_of(*tasks: str, lost: float = 0.0) -> Records:
        words = {"translation": ("direct-sum", "with-position"), "prediction": ("relative", "without-position")}
        cells = [
            cell(
                f"{task}-{kernel}-{symmetry}", task, kernel=kernel, symmetry=symmetry, position=[position], value=value
            )
            for task in tasks
            for position, value in [words[task]]
            for kernel in ("exponential", "rbf", "polynomial")
            for symmetry in ("asymmetric", "symmetric")
        ]
        noise = [0.02, -0.03, 0.01, 0.0, -0.01, 0.02, -0.02, 0.01, 0.03, -0.01, 0.0, -0.02]
        runs = [
            item
            for index, each in enumerate(cells)
            for base in [30 - lost * each.id.startswith("translation-rbf-symmetric")]
            for item in seeded(each.id, *(base + noise[(3 * index + 5 * seed) % 12] for seed in range(3)))
        ]
        return cells, runs

    both = answer_of(values, *sweep_of("translation", "prediction")).settings
    assert [(item.setting["task"], item.verdict) for item in both] == [("translation", HOLDS), ("prediction", HOLDS)]
    assert [len(item.outcomes) for item in both] == [
        sum(item.where["task"] == task for item in requests) for task in ("translation", "prediction")
    ]
    worse = answer_of(values, *sweep_of("translation", "prediction", lost=1.0)).settings
    assert [item.verdict for item in worse] == [FAILS, HOLDS]
    assert answer_of(values, *sweep_of("translation")).settings == both[:1]


def test_a_number_may_be_written_whole_in_a_claim() -> None:
    """A cell has the word 1.0, the claim says 1."""
    cells = [cell(kernel, kernel=kernel, training={"clip": 1.0}) for kernel in ("rbf", "exponential")]
    runs = [*seeded("rbf", 30.0, 30.1), *seeded("exponential", 20.0, 20.1)]
    assert finding(claim(contrast(where={"training.clip": 1})), cells, runs).verdict is HOLDS
