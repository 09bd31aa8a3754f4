"""Papers as data: those inside kdx, and every way in which one's own file can be wrong."""

from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import cell, seeded, sweep

from kdx.errors import Faults
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.papers.paper_file import Contrast, Expect, Paper, Rule, load_paper
from kdx.report.papers.verdicts import Verdict, answers
from tests.conftest import MAJORITY
from tests.grids import TSALLIS, recorded

HIGH, LOW = [90.1, 91.4, 89.8, 90.9], [49.5, 50.2, 49.9, 50.0]

WRITTEN = """\
title: Ours
scale: {translation: small}
tables:
  - table: Table 1
    where: {kernel: exponential}
    cells:
      - {where: {position: product}, metric: bleu, value: 34.71}
      - {where: {kernel: linear}, metric: bleu, value: not converge}
claims:
  - id: one
    statement: It works.
    source: Sec. 1
    holds:
      all:
        - {a: {kernel: rbf}, b: {kernel: exponential}, expect: better}
        - any:
            - {a: {training.steps: 10}, b: {training.steps: 20}, expect: no-worse, margin: 0.3, metric: bleu}
"""


def written(path: Path, text: str = WRITTEN) -> Paper:
    (path / "paper.yaml").write_text(text)
    return load_paper(str(path / "paper.yaml"))


def test_a_file_becomes_tables_and_claims(tmp_path: Path) -> None:
    paper = written(tmp_path)
    assert (paper.name, paper.title, paper.scale) == ("paper", "Ours", {"translation": "small"})
    assert [cell.value for cell in paper.tables[0].cells] == [34.71, "not converge"]
    (claim,) = paper.claims
    better, nested = claim.holds.parts
    assert isinstance(better, Contrast) and better.expect is Expect.BETTER and better.a == {"kernel": "rbf"}
    assert isinstance(nested, Rule) and nested.any
    (contrast,) = nested.parts
    assert isinstance(contrast, Contrast) and contrast.a == {"training.steps": "10"} and contrast.margin == 0.3


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("{kernel: exponential}\n", "{kernl: exponential}\n", ":5:13: unknown factor `kernl`"),
        ("kernel: linear", "kernel: linaer", ":8:26: unknown kernel `linaer`"),
        ("metric: bleu, value: 34.71", "value: 34.71", ":7:9: `tables.cells.metric` is missing"),
        (
            "value: not converge",
            "value: maybe",
            ":8:56: `maybe` as tables.cells.value\n  allowed: a number, or not converge",
        ),
        (
            "value: not converge",
            "value: true",
            ":8:56: `true` as tables.cells.value\n  allowed: a number, or not converge",
        ),
        ("{kernel: linear}", "{position: product}", ":8:59: not converge where a cell of the same words has 34.71"),
        ("metric: bleu, value: not", "metric: blue, value: not", ":8:43: unknown metric `blue`"),
        ("title: Ours", "titel: Ours", ":1:1: unknown key `titel`"),
        ("{translation: small}", "{translate: small}", ":2:"),
        ("expect: better", "expect: beter", ":15:64: unknown claims.holds.all.expect `beter`"),
        ("expect: better", "expect: equivalent", ":15:11: `equivalent` needs a margin"),
        ("b: {kernel: exponential}, ", "b: {kernel: rbf}, ", ":15:33: a cell may be on both sides"),
        ("b: {kernel: exponential}, ", "b: {norm: pre}, ", ":15:33: a cell may be on both sides"),
        ("b: {kernel: exponential}, ", "b: {kernel: rbf, norm: pre}, ", ":15:33: a cell may be on both sides"),
        ("b: {kernel: exponential}, ", "", ":15:11: `claims.holds.all.b` is missing"),
        (
            "{a: {kernel: rbf}",
            "{where: {kernel: rbf}, a: {kernel: rbf}",
            ":15:19: `kernel` stands under `where` and in",
        ),
        ("{a: {kernel: rbf}", "{a: {kernel: rfb}", ":15:24: unknown kernel `rfb`"),
        ("{a: {training.steps: 10}", "{a: {training.step: 10}", ":17:20: unknown factor `training.step`"),
        ("metric: bleu}", "metric: bleeu}", ":17:105: unknown metric `bleeu`"),
        *(
            ("margin: 0.3", f"margin: {bad}", f":17:92: `{text}` as margin\n  allowed: a number above 0, in units of")
            for bad, text in [("-1", "-1"), ("0%", "0%"), ("-1%", "-1%"), ("1 %", "1 %"), ("true", "true"), ("x", "x")]
        ),
        ("        - any:\n", "        - some:\n", ":16:11: "),
        ("      all:\n", "      most:\n", ":14:7: "),
        ("    holds:\n", "    hold:\n", ":13:5: unknown key `claims.hold`"),
        ("    statement: It works.\n", "", ":10:5: `claims.statement` is missing"),
    ],
)
def test_a_fault_is_reported_at_its_place(tmp_path: Path, old: str, new: str, text: str) -> None:
    assert old in WRITTEN
    with pytest.raises(Faults) as caught:
        written(tmp_path, WRITTEN.replace(old, new))
    assert f"{tmp_path}/paper.yaml{text}" in str(caught.value), str(caught.value)


@pytest.mark.parametrize(("stated", "margin"), [("1", 1.0), ("0.25", 0.25), ("1%", "1%"), ("0.5%", "0.5%")])
def test_a_margin_is_a_number_or_a_share(tmp_path: Path, stated: str, margin: float | str) -> None:
    (claim,) = written(tmp_path, WRITTEN.replace("margin: 0.3", f"margin: {stated}")).claims
    rule = claim.holds.parts[1]
    assert isinstance(rule, Rule) and isinstance(rule.parts[0], Contrast)
    assert rule.parts[0].margin == margin


def test_all_faults_are_reported_at_once_in_their_order(tmp_path: Path) -> None:
    text = WRITTEN.replace("linear", "linaer").replace("kernel: rbf", "kernel: rfb").replace("product", "produkt")
    with pytest.raises(Faults) as caught:
        written(tmp_path, text)
    assert [str(fault.place).rpartition("yaml:")[2] for fault in caught.value.faults] == ["7:28", "8:26", "15:24"]


def test_a_claim_declares_how_its_error_is_found_and_what_would_test_it(tmp_path: Path) -> None:
    (claim,) = written(tmp_path, WRITTEN).claims
    assert (claim.pairs, claim.grids) == (None, ())
    text = WRITTEN.replace("    holds:", "    pairs: seed\n    grids: [tsai2019/table1-mini]\n    holds:")
    (claim,) = written(tmp_path, text).claims
    assert (claim.pairs, claim.grids) == ("seed", ("tsai2019/table1-mini",))
    with pytest.raises(Faults, match=r"paper\.yaml:\d+:\d+"):
        written(tmp_path, WRITTEN.replace("    holds:", "    pairs: document\n    holds:"))


def test_two_claims_of_one_id_are_refused(tmp_path: Path) -> None:
    again = WRITTEN + WRITTEN.partition("claims:\n")[2]
    with pytest.raises(Faults, match=r"paper\.yaml:18:9: two claims `one`"):
        written(tmp_path, again)


@pytest.mark.parametrize("text", ["", "- a\n", "claims: none\n", "claims: [1]\n", "claims:\n  - {id: a\n"])
def test_what_is_no_paper_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Faults, match=r"paper\.yaml"):
        written(tmp_path, text)


@pytest.mark.parametrize("name", ["tsai", "no/such.yaml", "x" * 5000, "\0"])
def test_an_unknown_paper_is_refused_with_those_there_are(name: str) -> None:
    known = "arora2023, chi2022, kernel, layers, li2024, press2022, product, shaw2018, symmetry, tsai2019, value"
    with pytest.raises(Faults, match=f"a YAML file, or one of {known}"):
        load_paper(name)


def test_a_published_number_that_stands_in_several_tables_is_the_same() -> None:
    """Tables 1, 3 and 4 repeat Table 1's product kernel, and Tables 1 and 2 the exponential one."""
    values: dict[object, set[object]] = {}
    for table in load_paper("tsai2019").tables:
        for each in table.cells:
            words = {**table.where, **each.where}
            values.setdefault((each.metric, tuple(sorted(words.items()))), set()).add(each.value)
    assert all(len(same) == 1 for same in values.values())
    assert {33.98} in values.values() and {34.71} in values.values() and {"not converge"} in values.values()


OF_ONES_OWN = """\
title: Ours
scale: {majority: small}
claims:
  - id: sure
    statement: A heavy tail is surer.
    holds:
      all:
        - a: {kernel: "my.py:Cauchy"}
          b: {kernel: exponential}
          where: {task: majority}
          metric: confidence
          expect: better
"""


def custom(spec: ResolvedSpec, kernel: str) -> ResolvedSpec:
    """A cell of a task from a package, with a custom kernel or one of kdx, as a database has it."""
    components = {"majority": recorded("task", "majority", MAJORITY)}
    if ".py:" in kernel:
        components[kernel] = recorded("kernel", kernel, (TSALLIS % "below=9").replace("Tsallis", "Cauchy"))
    select = {"metric": "valid/accuracy", "direction": "max"}
    plain = {**spec.plain, "task": "majority", "kernel": kernel, "components": components, "select": select}
    return ResolvedSpec({**plain, "power": 2.0})


def test_words_and_metrics_of_custom_components_are_known_where_a_sweep_has_them(
    tmp_path: Path, components: None
) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(OF_ONES_OWN)
    with pytest.raises(Faults) as caught:
        load_paper(str(path))
    text = str(caught.value)
    assert "unknown task `majority`" in text
    path.write_text(OF_ONES_OWN.replace("scale: {majority: small}\n", ""))
    with pytest.raises(Faults, match=":10:19: unknown metric `confidence`"):
        load_paper(str(path))
    path.write_text(OF_ONES_OWN)
    kernels = ("my.py:Cauchy", "exponential")
    cells = [cell(kernel, "translation", kernel="exponential") for kernel in kernels]
    cells = [replace(each, spec=custom(each.spec, each.id)) for each in cells]
    runs = [each for kernel, scores in zip(kernels, (HIGH, LOW), strict=True) for each in seeded(kernel, *scores)]
    metrics = {run.id: {"test/confidence": run.test_score} for run in runs}
    ours = sweep(cells, runs, metrics=metrics)
    (answer,) = answers(load_paper(str(path), [ours]).claims, [ours])
    assert [setting.verdict for setting in answer.settings] == [Verdict.HOLDS]
    path.write_text(OF_ONES_OWN.replace('Cauchy"', 'Cauchy", power: 2'))
    (answer,) = answers(load_paper(str(path), [ours]).claims, [ours])
    assert [setting.verdict for setting in answer.settings] == [Verdict.HOLDS]
    path.write_text(OF_ONES_OWN.replace('Cauchy"', 'Cauchy", powr: 2'))
    with pytest.raises(Faults, match=r"(?s)unknown factor `powr`.*did you mean `power`"):
        load_paper(str(path), [ours])
    for word, problem in (("confidence", "unknown metric `confidenc`"), ("Cauchy", "unknown kernel `my.py:Cauch`")):
        path.write_text(OF_ONES_OWN.replace(word, word[:-1]))
        with pytest.raises(Faults, match=problem):
            load_paper(str(path), [ours])
