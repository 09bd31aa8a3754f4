"""The documents: their blocks run, their links lead somewhere, and the tests that they name exist."""

import ast
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kdx.grid.sections import Data, Evaluation, Model, Select, Training
from kdx.grid.spec import CellSpec
from tests import document_blocks, example, reference, words, words_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if document_blocks.blocks(page)]


def name(page: Path) -> str:
    """The page as it is shown, such as docs/do/test-claims.md."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page.parent == ROOT else pytest.mark.slow) for page in WITH_BLOCKS],
    ids=name,
)
def test_a_document_shows_what_happens(page, tmp_path):
    """All of its blocks, in order, in one fresh folder."""
    shutil.copy(ROOT / "runs.db.example", tmp_path)
    document_blocks.run(page, tmp_path)


def test_every_number_that_names_its_runs_is_that_of_the_example():
    """Tables with their command, and numbers in prose with the command that traces them."""
    command = [sys.executable, "-m", "kdx", "check", *map(str, PAGES), "--db", str(ROOT / "runs.db.example"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["numbers"] > 150


def test_the_readme_counts_the_verdicts_that_the_findings_show():
    """Those of the findings are printed by a block that is run."""
    readme, findings = (
        page.read_text(encoding="utf-8") for page in (ROOT / "README.md", ROOT / "docs/understand/findings.md")
    )
    (told,) = re.findall(
        r'Of (\d+) verdicts, (\d+) are "holds"\s+\(.*?\), (\d+) "does not hold" \(.*?\) and (\d+)',
        readme,
        re.DOTALL,
    )
    assert [told] == re.findall(
        r"^(\d+) verdicts.*: (\d+) hold, (\d+) do not hold, (\d+) cannot tell$", findings, re.MULTILINE
    )


ONLY_MODERN = ("no-positions-in-between", "windows")
"""Claims of rotary positions, which only the modern base has, so that no setting names the base."""
BASES = [
    (task, corpus, feed_forward)
    for feed_forward in ("relu", "swiglu")
    for task, corpus in (("translation", "multi30k"), ("prediction", "wikitext2"))
]


@pytest.mark.parametrize(
    ("page", "papers", "columns"),
    [
        ("findings", ("tsai2019", "shaw2018"), BASES),
        ("studies", ("symmetry", "value", "layers", "kernel", "product"), [*BASES, ("answer", "recall", "relu")]),
    ],
)
def test_the_verdicts_of_a_page_are_those_of_the_example(page, papers, columns):
    """A row names its claim, a column its task and base; a star says that the claim is confounded."""
    command = [sys.executable, "-m", "kdx", "claims", "--db", str(ROOT / "runs.db.example"), "--json"]
    claims = [
        claim
        for paper in json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["papers"]
        if paper["paper"] in papers
        for claim in paper["claims"]
    ]
    verdicts = {
        (claim["id"], setting["task"], setting["data.corpus"], base): (
            made["verdict"] + "\\*" * bool(made["confounded_by"])
        )
        for claim in claims
        for made in claim["settings"]
        if (setting := made["setting"])
        for base in [setting.get("model.feed_forward", "swiglu" if claim["id"] in ONLY_MODERN else "relu")]
    }
    text = (DOCS / f"understand/{page}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\(`([\w-]+)`\) \|(.*)\|$", text, re.MULTILINE)
    assert {claim for claim, _ in rows} == {claim["id"] for claim in claims}
    for claim, cells in rows:
        shown = [cell.strip().replace("**", "") for cell in cells.split("|")]
        assert shown == [verdicts.get((claim, *column), "–") for column in columns], claim


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[tuple[Path, str]]:
    """(file, anchor) of each link to a file; the anchor may be empty."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    parts = [target.partition("#") for target in targets if "://" not in target]
    return [((page.parent / file).resolve() if file else page, anchor) for file, _, anchor in parts]


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere():
    broken = [
        f"{name(page)}: {target.name}#{anchor}"
        for page in PAGES
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]
    assert broken == []


def test_every_page_is_in_the_index_of_its_room():
    lost = [
        name(page)
        for page in PAGES
        if page.parent not in (ROOT, DOCS)
        and page not in {target for target, _ in links(page.parent / "README.md")}
        and page.name != "README.md"
    ]
    assert lost == []


def test_the_readme_leads_to_every_room():
    rooms = {page for page in PAGES if page.name == "README.md" and page.parent.parent == DOCS}
    assert len(rooms) == 4
    for index in (ROOT / "README.md", DOCS / "README.md"):
        assert rooms <= {target for target, _ in links(index)}, name(index)


TRUST = (DOCS / "understand" / "trust.md").read_text(encoding="utf-8")


def promise_tests(text: str) -> dict[str, tuple[Path, str]]:
    """Label → file and function of the test to which it leads: `[7]: ../../tests/grid/test_source.py "test_it"`."""
    result = re.findall(r'^\[(\d+)\]: (\S+/tests/[\w/]+\.py) "(\w+)"$', text, re.MULTILINE)
    assert len({label for label, _, _ in result}) == len(result)
    return {label: ((DOCS / "understand" / file).resolve(), function) for label, file, function in result}


def test_the_tests_that_hold_promises_exist():
    missing = []
    for file, function in promise_tests(TRUST).values():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if function not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
            missing.append(f"{file}::{function}")
    assert missing == []


def test_every_promise_names_its_test():
    promised = TRUST.partition("\n## ")[2].partition("\n## What kdx does not promise")[0]
    promises = {
        promise: re.findall(r"\[(\d+)\]", promise)
        for promise in re.findall(r"^- .*(?:\n  .*)*", promised, re.MULTILINE)
    }
    assert len(promises) > 15
    assert [promise for promise, labels in promises.items() if not labels] == []
    assert {label for labels in promises.values() for label in labels} == promise_tests(TRUST).keys()


def test_every_key_and_value_of_a_cell_is_on_the_page_of_keys_or_values():
    page = "".join((DOCS / "reference" / name).read_text(encoding="utf-8") for name in ("grid-keys.md", "words.md"))
    sections = {"training": Training, "model": Model, "data": Data, "evaluation": Evaluation, "select": Select}
    fields = CellSpec.model_fields | {
        key: field for section in sections.values() for key, field in section.model_fields.items()
    }
    wanted = {
        *fields,
        *(word for field in fields.values() for word in words.names_in((field.annotation, *field.metadata))),
    }
    named = {part for name in re.findall(r"`([^`]+)`", page) for part in (name, *name.split("."))}
    assert wanted - named == set()


def test_the_table_and_the_page_of_words_are_what_their_classes_say():
    written = {words_table.FILE: words_table.text(), words.FILE: words.text(), words.FACTORS: words.factors_text()}
    for file, text in written.items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name} is not what the classes say: make words"


def test_the_reference_is_what_the_code_says():
    pages = {page.name: page.read_text(encoding="utf-8") for page in reference.PAGES.glob("*.md")}
    assert [name for name, page in pages.items() if reference.filled(page) != page] == [], "make reference"
    parts = [part for page in pages.values() for _, part, _ in reference.PART.findall(page)]
    assert sorted(parts) == sorted(reference.PARTS)


def test_the_example_leaves_out_what_its_page_says(tmp_path):
    """Made again of itself, it lacks nothing more."""
    again = tmp_path / "again.db"
    example.make(example.EXAMPLE, again)
    rows = [
        [connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("metric", "output")]
        for connection in map(sqlite3.connect, (example.EXAMPLE, again))
    ]
    assert rows[0] == rows[1]


def test_the_example_names_no_folder_of_the_machine_that_trained_it(tmp_path):
    trained, again = tmp_path / "trained.db", tmp_path / "again.db"
    shutil.copy(example.EXAMPLE, trained)
    with closing(sqlite3.connect(trained)) as connection, connection:
        connection.execute("UPDATE plan SET grid = replace(grid, ?, ?)", ('"file": "', f'"file": "{ROOT}/'))
    example.make(trained, again)
    for path in (example.EXAMPLE, again):
        with closing(sqlite3.connect(path)) as connection:
            grids = connection.execute("SELECT grid FROM sweep UNION ALL SELECT grid FROM plan").fetchall()
        files = {json.loads(grid)["file"] for (grid,) in grids}
        assert len(files) == 22
        assert all(not Path(file).is_absolute() and (ROOT / file).is_file() for file in files)
