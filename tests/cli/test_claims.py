"""`kdx claims` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import completed, planned, refused, typed

from kdx.report.papers.paper_file import load_paper, shipped


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    for run in planned(2):
        completed(run, 2.5)
    return tmp_path


def test_the_closing_line_counts_the_verdicts_of_each_claim_and_setting() -> None:
    claims = len(load_paper("tsai2019").claims)
    shown = typed("claims", "tsai2019").stderr
    assert (
        shown
        == f"{claims} verdicts, one per claim and setting: 0 hold, 0 do not hold, 0 cannot tell, {claims} not tested\n"
    )


def test_without_a_paper_it_is_every_paper_inside_kdx() -> None:
    assert [paper["paper"] for paper in json.loads(typed("claims", "--json").stdout)["papers"]] == list(shipped())


def test_all_sweeps_are_asked_unless_one_is_named(folder: Path) -> None:
    planned(1, name="newer")
    assert json.loads(typed("claims", "--json").stdout)["sweeps"] == ["newer", "tiny"]
    for name in ("newer", "grid.yaml"):
        assert json.loads(typed("claims", "--sweep", name, "--json").stdout)["sweeps"] == ["newer"]
    shown = refused("claims", "--sweep", "runs.db")
    assert str(shown) == "`runs.db` is a database, not a sweep\n  hint: name it with --db runs.db"


def test_a_paper_may_be_a_file_of_ones_own(folder: Path) -> None:
    (folder / "findings.yaml").write_text("title: Findings\nsource: notes\n")
    assert typed("claims", "findings.yaml").stdout == "Findings. notes\n"
    assert refused("claims", "absent.yaml").exit_code == 2


def test_latex_names_the_packages_that_it_takes_once() -> None:
    shown = typed("claims", "--format", "latex").stdout
    assert shown.startswith(
        "% \\usepackage{array,booktabs,graphicx,longtable,lscape,rotating}\n\\clearpage\n\\section*{"
    )
    assert shown.count("usepackage") == 1


def test_every_format_but_csv_has_the_claims(monkeypatch) -> None:
    assert refused("claims", "tsai2019", "--format", "csv").problem == "claims are not written as CSV"
    monkeypatch.setenv("KDX_FORMAT", "csv")
    assert json.loads(typed("claims", "tsai2019", "--json").stdout)["papers"]
    assert "<h2>" in typed("claims", "tsai2019", "--format", "html").stdout
    assert typed("claims", "tsai2019", "--format", "markdown").stdout.startswith("# Transformer Dissection")


@pytest.mark.parametrize("option", ["--table", "--against", "--statistics", "--paired-ar", "--notes"])
def test_what_is_of_tables_is_no_option(option: str) -> None:
    assert refused("claims", "tsai2019", option, "x").exit_code == 2


def test_several_sweeps_may_be_named(folder: Path) -> None:
    planned(1, name="newer one")
    planned(1, name="other")
    asked = ("--sweep", "newer one", "--sweep", "tiny", "--sweep", "tiny")
    assert json.loads(typed("claims", *asked, "--json").stdout)["sweeps"] == ["newer one", "tiny"]
