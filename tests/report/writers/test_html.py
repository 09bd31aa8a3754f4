"""The page in a real browser: it loads nothing, says nothing to the console, and every part of it works by keyboard."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Browser
from sweeps import cell, run, seeded, sweep

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.report.figures.charts import AttentionMap
from kdx.report.papers.paper_file import Claim, Contrast, Rule, load_paper
from kdx.report.papers.verdicts import answers
from kdx.report.sheet import listing
from kdx.report.tables import tables
from kdx.report.writers.html.learning import LOSS, curves_wanted
from kdx.report.writers.html.page import claims_to_html, fragment, to_html
from kdx.sanitize import sanitize
from kdx.store.records import CurveRecord, EvaluationRecord, Provenance, RunState, SweepRecord

HOSTILE = [
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "\"><svg onload=window.pwned=1><a href='javascript:window.pwned=1'>",
    "{{ 7 * 7 }} {% raw %} ]]> <!-- & &lt;b&gt; &#60;",
    "bidi \u202e\u2066 zero\u200bwidth \x1b[31m esc \0 \x85 two\nlines",
    "https://example.org/x.png url(https://example.org) @import",
    "日本語 → Ελληνικά 🙂",
]


def falling(run_id: int, steps: range, start: float = 6.0) -> CurveRecord:
    values = [start * math.exp(-step / 300) + 0.1 * math.sin(step * run_id) for step in steps]
    return CurveRecord(array("q", steps), array("d", values))


def record() -> SweepRecord:
    cells = [
        cell(f"{kernel}-{position}", kernel=kernel, position=position)
        for kernel in ("exponential", "rbf")
        for position in ("none", "product", "relative")
    ]
    runs = [
        *seeded("exponential-none", 20.0, 21.0, 20.5),
        *seeded("exponential-product", 30.0, 31.0, 30.5),
        *seeded("rbf-none", 9.5, 10.0, 9.0),
        *seeded("rbf-product", 30.1, 31.0, 30.6),
        *(run("rbf-relative", seed, state=RunState.DIVERGED, id=7 + seed, error="loss is NaN") for seed in (0, 1)),
    ]
    origin = Provenance("d" * 64, "c" * 64, {"torch": "2.13", "host": "here"}, {"test/bleu": "sacrebleu, signature"})
    spec = {"name": "main", "caption": "Kernels", "rows": ["position"], "columns": ["kernel"]}
    return sweep(cells, runs, tables=[spec], provenance={each.id: origin for each in runs}, name="demo")


def page_of(sweep: SweepRecord, steps: range = range(0, 1000, 100)) -> str:
    shown = tables(sweep)
    names = curves_wanted(sweep)
    curves = {each.id: {name: falling(each.id, steps) for name in names} for each in sweep.runs}
    return to_html(shown, sweep, curves)


def test_a_page_draws_the_attention_that_is_asked_for_and_leads_to_it() -> None:
    maps = [
        ("rbf, run 7: the cat", [AttentionMap("decoder.layers.0", ("the", "cat"), ("the", "cat"), [[[1, 0], [1, 0]]])])
    ]
    shown = to_html(tables(record()), record(), {}, maps)
    assert '<a href="#attention">' in shown and "rbf, run 7: the cat" in shown and ">decoder.layers.0<" in shown
    assert 'id="attention"' not in page_of(record())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(record()))
    return path


@pytest.fixture
def quiet(browser: Browser) -> Iterator[Browser]:
    """The browser; afterwards it must have asked for the page alone and complained of nothing."""
    yield browser
    assert browser.complaints() == []
    assert [address for address in browser.requests() if not address.startswith("file:///")] == []
    assert len(browser.requests()) == 1


SEEN = "((one) => ((box) => box.left >= 0 && box.right <= innerWidth)(one.getBoundingClientRect()))"
"""Whether an element lies between the left and the right of the window."""


def column_of(browser: Browser, column: int) -> list[str]:
    return browser.value(
        f"[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[{column}].textContent.trim())"
    )


def tab_to(browser: Browser, condition: str) -> None:
    for _ in range(80):
        browser.press("Tab")
        if browser.value(f"((element) => {condition})(document.activeElement)"):
            return
    raise AssertionError(f"no key leads to {condition}")


def test_it_shows_tables_figures_and_every_run_without_the_network(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    assert quiet.value("document.title") == "demo"
    assert quiet.value("document.querySelectorAll('table')[0].rows.length") == 2 + 3
    assert column_of(quiet, 1) == ["21.00", "31.00", "–"]
    assert column_of(quiet, 3) == ["10.00", "31.00", "diverged 2/2"]
    # The table as a picture, a forest, a scatter, two charts of several cells, and two curves for each of the five
    # cells that ran.
    assert quiet.value("document.querySelectorAll('.plots svg, .curves svg').length") == 5 + 2 * 5
    assert quiet.value("document.querySelectorAll('.run-details[id^=cell-]').length") == 6
    assert quiet.value("document.querySelectorAll('tr[id^=run-]').length") == 14
    assert quiet.value("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_forbidden_is_forbidden(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.x = 1'}))"
    )
    browser.value(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}))"
    )
    assert browser.value("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')") == "refused"
    assert browser.value("window.x") is None
    assert len([complaint for complaint in browser.complaints() if "Content Security Policy" in str(complaint)]) >= 3


def test_columns_are_sorted_by_keyboard_and_back(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    before = column_of(quiet, 3)
    tab_to(quiet, "element.tagName === 'BUTTON' && element.closest('th').dataset.column === '3'")
    order = "document.querySelector('th[data-column=\"3\"]').getAttribute('aria-sort')"
    quiet.press("Enter")
    # The best comes first, though no header has the arrow of a metric that all columns share.
    assert (quiet.value(order), column_of(quiet, 3)[0][:5]) == ("descending", "31.00")
    assert column_of(quiet, 3)[-1] == "diverged 2/2"
    quiet.press(" ")
    assert (quiet.value(order), column_of(quiet, 3)[0][:5]) == ("ascending", "10.00")
    quiet.press("Enter")
    assert (quiet.value(order), column_of(quiet, 3)) == (None, before)
    assert quiet.value("document.activeElement.tagName") == "BUTTON"


def test_names_and_rounded_numbers_are_sorted_too(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    quiet.value("document.querySelector('th[data-column=\"0\"] button').click()")
    assert column_of(quiet, 0) == ["none", "product", "relative"]
    quiet.value("document.querySelector('th[data-column=\"0\"] button').click()")
    assert column_of(quiet, 0) == ["relative", "product", "none"]
    differences = "[...document.querySelectorAll('table')].find((one) => one.textContent.includes('better by'))"
    button = f"[...{differences}.querySelectorAll('button')].find((one) => one.textContent === 'better by')"
    quiet.value(f"{button}.click()")
    rows = quiet.value(f"[...{differences}.tBodies[0].rows].map((row) => row.querySelector('td').textContent)")
    numbers = [float(row.replace("−", "-")) for row in rows]
    assert numbers == sorted(numbers) and numbers[0] < 0
    place = "Object.assign(document.createElement('td'), {textContent: '−1,174,528'})"
    assert quiet.value(f"keyOf({place})") == -1174528


def test_a_number_leads_to_its_run_and_enter_opens_it(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    tab_to(quiet, "element.matches('td a[href^=\"#run-\"]')")
    href = quiet.value("document.activeElement.getAttribute('href')")
    quiet.press("Enter")
    row = f"document.querySelector('{href}')"
    assert quiet.value(f"{row}.closest('details').open")
    assert quiet.value(f"document.activeElement === {row}")
    assert quiet.value(f"((box) => box.top >= 0 && box.bottom <= innerHeight)({row}.getBoundingClientRect())")
    text = quiet.value(f"{row}.closest('details').textContent")
    for part in (
        "selected",
        "completed",
        "sacrebleu, signature",
        "d" * 64,
        "c" * 64,
        "torch 2.13",
        "kernel: exponential",
    ):
        assert part in text


def test_points_of_plots_are_links_that_say_what_they_are(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    tab_to(quiet, "element.matches('svg a')")
    label = quiet.value("document.activeElement.querySelector('path').getAttribute('aria-label')")
    assert re.fullmatch(r"position none / exponential, seed \d: [\d.]+", label), label
    quiet.press("Enter")
    assert quiet.value("document.querySelector(location.hash).closest('details').open")


def test_a_link_to_a_run_opens_it_when_the_page_is_loaded(quiet: Browser, page: Path) -> None:
    quiet.open(page, "#run-7")
    assert quiet.value("document.querySelector('#run-7').closest('details').open")
    assert "Run 7: loss is NaN" in quiet.value("document.querySelector('#run-7').closest('details').textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_in_dark(quiet: Browser, page: Path, scheme: str) -> None:
    quiet.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    quiet.open(page)
    channels = "(colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    paper = quiet.value(f"({channels})(getComputedStyle(document.body).backgroundColor)")
    assert (sum(paper) > 600) is (scheme == "light")
    for part, name in (("body", "color"), (".notes", "color"), ("svg text", "fill"), ("svg a path", "stroke")):
        colour = quiet.value(f"({channels})(getComputedStyle(document.querySelector('{part}')).{name})")
        assert contrast(colour, paper) >= (3.0 if part == "svg a path" else 4.5), part
    quiet.ask("Emulation.setEmulatedMedia", features=[])


def contrast(first: list[float], other: list[float]) -> float:
    """As the Web Content Accessibility Guidelines define it: 4.5 for text, 3 for marks."""

    def luminance(colour: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (x / 255 for x in colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_of_many_cells_the_best_and_the_baseline_lie_over_each_other() -> None:
    cells = [cell(f"arm-{number}", labels={"approach": f"arm {number}"}) for number in range(12)]
    runs = [
        run for number in range(12) for run in seeded(f"arm-{number}", *(20.0 + number + seed for seed in (0, 0.5)))
    ]
    spec = {"name": "main", "rows": ["approach"], "baseline": {"approach": "arm 0"}}
    page = page_of(sweep(cells, runs, tables=[spec]))
    (together,) = re.findall(r"The best cells and baselines together.</figcaption>(.*?)</figure>", page, re.DOTALL)
    shown = {*re.findall(r">(arm \d+)<", together)}
    assert len(shown) == 8 and {"arm 8", "arm 9", "arm 10", "arm 11", "arm 0"} <= shown


def test_it_prints_on_white_with_its_numbers_open(quiet: Browser, page: Path) -> None:
    quiet.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}], media="print")
    quiet.open(page)
    assert quiet.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    with quiet.screen(700):  # pixels of a sheet of A4 between its margins
        quiet.value("document.querySelectorAll('details.numbers').forEach((one) => one.open = true)")
        shown = "[...document.querySelectorAll('.numbers table')]"
        assert quiet.value(f"{shown}.every((one) => one.getBoundingClientRect().right <= innerWidth)"), "nothing is cut"
    quiet.ask("Emulation.setEmulatedMedia", features=[], media="")
    assert len(quiet.ask("Page.printToPDF")["data"]) > 10_000
    assert quiet.value("[...document.querySelectorAll('details.numbers')].every((one) => one.open)")


def test_hostile_names_stay_text(quiet: Browser, tmp_path: Path, figure) -> None:
    labels = [{"approach": name, name: "x"} for name in HOSTILE]
    cells = [cell(f"c{i}", labels=label, training={"steps": i + 1}) for i, label in enumerate(labels)]
    runs = [run for each in cells for run in seeded(each.id, 1.0, 2.0 + len(each.id))]
    runs.append(run("c0", 9, state=RunState.FAILED, id=1, error=HOSTILE[0] + HOSTILE[4]))
    origin = Provenance(HOSTILE[0], HOSTILE[1], {name: name for name in HOSTILE}, {name: name for name in HOSTILE})
    specs = [{"name": name, "caption": name, "rows": ["approach"], "columns": [name]} for name in HOSTILE]
    hostile = sweep(cells, runs, tables=specs, provenance={each.id: origin for each in runs}, name=HOSTILE[0])
    path = tmp_path / "hostile.html"
    path.write_text(page_of(hostile, range(3)), encoding="utf-8", errors="strict")
    quiet.open(path)
    assert quiet.value("window.pwned") is None
    assert quiet.value("document.title") == sanitize(HOSTILE[0])
    scripts = quiet.value("document.querySelectorAll('script').length")
    assert scripts == 1
    foreign = quiet.value("document.querySelectorAll('img, iframe, object, link, base, form, svg svg').length")
    assert foreign == 0
    assert quiet.value("[...document.querySelectorAll('a')].every((one) => one.getAttribute('href').startsWith('#'))")
    assert column_of(quiet, 0) == [sanitize(name) for name in HOSTILE]
    assert "49" not in quiet.value("document.querySelector('h1').textContent")
    text = path.read_text()
    assert not any(sign in text for sign in "\u202e\u2066\u200b\x1b\0\x85")
    figure(f"{len(HOSTILE)} hostile names: {foreign} elements and {scripts - 1} scripts of theirs in the page")


@pytest.mark.slow
def test_a_large_sweep_stays_below_five_megabytes(quiet: Browser, tmp_path: Path) -> None:
    cells = [
        cell(f"c{i}", labels={"x": str(i // 10), "y": str(i % 10)}, training={"steps": i + 1000}) for i in range(100)
    ]
    runs = [
        run(each.id, seed, 20.0 + index / 10 + seed / 50, 20.0 + index / 9 - seed / 70, id=100 * index + seed)
        for index, each in enumerate(cells)
        for seed in range(10)
    ]
    large = sweep(cells, runs, tables=[{"name": "large", "rows": ["x"], "columns": ["y"]}])
    path = tmp_path / "large.html"
    path.write_text(page_of(large, range(1000)))
    assert path.stat().st_size < 5_000_000
    quiet.open(path)
    assert quiet.value("document.querySelectorAll('.plots svg, .curves svg').length") == 5 + 2 * 100


def test_a_sweep_without_runs_is_a_page_too(quiet: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_text(page_of(sweep([], [], name="nothing")))
    quiet.open(path)
    assert quiet.value("document.querySelector('h1').textContent") == "nothing"


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    """Those of a paper, and one of ours that the runs can answer."""
    paper = load_paper("tsai2019")
    sides = {"a": {"kernel": "rbf", "position": "product"}, "b": {"kernel": "exponential", "position": "product"}}
    contrasts = (
        Contrast.model_validate({**sides, "expect": "better"}),
        Contrast.model_validate({**sides, "expect": "equivalent", "margin": 1.0}),
    )
    ours = Claim(
        id="kernel",
        statement="A kernel with more words than are needed is no worse.",
        source="here",
        holds=Rule(all=contrasts),
    )
    path = tmp_path / "claims.html"
    path.write_text(claims_to_html([(paper, answers((*paper.claims, ours), [record()]))], "8 claims", " --db my.db"))
    return path


def test_claims_are_a_page_of_their_own(quiet: Browser, claims: Path) -> None:
    quiet.open(claims)
    titles = quiet.value("[...document.querySelectorAll('main h3')].map((one) => one.innerText).join('|')").split("|")
    assert len(titles) == 3 and titles[0] == "Verdicts"
    assert "kernel" in titles[1] and titles[2].lower().startswith("not tested")
    assert quiet.value("document.querySelectorAll('main table:last-of-type .badge').length") > 0
    assert "kdx sweep tsai2019/table2-mini --db my.db" in quiet.value("document.body.innerText")
    assert quiet.value("document.querySelector('main h2').innerText").startswith("Transformer Dissection")


@pytest.mark.parametrize("width", [1400, 800, 400])
def test_a_verdict_comes_first_and_is_never_off_the_screen(quiet: Browser, claims: Path, width: int) -> None:
    with quiet.screen(width):
        quiet.open(claims)
        rows = "[...document.querySelectorAll('section:has(h3 .badge:not(.not-tested)) tbody tr')]"
        assert quiet.value(f"{rows}.length > 0 && {rows}.every((row) => row.cells[0].querySelector('.badge'))")
        titles = "[...document.querySelectorAll('h3')]"
        assert quiet.value(f"{titles}[0].textContent.trim() === 'Verdicts'")
        assert quiet.value(f"{titles}.slice(1).every((one) => one.firstElementChild.matches('.badge'))")
        assert quiet.value(f"[...document.querySelectorAll('.badge')].every((one) => {SEEN}(one))")
        assert quiet.value("document.documentElement.scrollWidth <= innerWidth")
        # It stays where it is when the rest of the row is scrolled.
        quiet.value("document.querySelectorAll('.wide').forEach((one) => one.scrollLeft = 9999)")
        assert quiet.value(f"[...document.querySelectorAll('.badge')].every((one) => {SEEN}(one))")


def long_names() -> SweepRecord:
    name = "Vaswani et al. (2017), Eq. 4, with a name that is longer than anybody would want it to be, number "
    labels = [{"approach": f"{name}{at}", "kernel": "exponential"} for at in range(3)]
    cells = [cell(f"c{at}", labels=label, training={"steps": at + 1}) for at, label in enumerate(labels)]
    runs = [run for at, each in enumerate(cells) for run in seeded(each.id, 20.0 + at, 21.5 + at)]
    signature = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0" * 2
    origin = Provenance("d" * 64, "c" * 64, {"torch": "2.13"}, {"test/bleu": signature})
    spec = {"name": "main", "rows": ["approach"]}
    return sweep(cells, runs, tables=[spec], provenance={each.id: origin for each in runs})


@pytest.mark.parametrize("width", [1400, 800, 400])
def test_scores_are_on_the_screen_and_nothing_widens_it(quiet: Browser, tmp_path: Path, page: Path, width: int) -> None:
    path = tmp_path / "long.html"
    path.write_text(page_of(long_names()))
    with quiet.screen(width):
        for each in (path, page):
            quiet.open(each)
            quiet.value("document.querySelectorAll('details').forEach((one) => one.open = true)")
            assert quiet.value("document.documentElement.scrollWidth <= innerWidth")
            first = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.querySelector('td.score'))"
            assert quiet.value(f"{first}.every((one) => {SEEN}(one))")


def test_the_table_as_a_picture_comes_first_and_the_table_is_on_the_same_screen(quiet: Browser, page: Path) -> None:
    tops = "['figure svg', 'table'].map((one) => document.querySelector(one).getBoundingClientRect().top)"
    for width in (1400, 700, 320):
        with quiet.screen(width):
            quiet.open(page)
            picture, table = quiet.value(tops)
            assert 0 < picture < table < 700


def test_a_point_says_what_it_is_under_the_pointer(quiet: Browser, page: Path) -> None:
    quiet.open(page)
    for points in ("figure.plots svg path[aria-label]", ".curves svg path[aria-label*=step]"):
        point = f"document.querySelector('{points}')"
        quiet.value(f"{point}.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))")
        assert re.search(r": [\d.]+", quiet.value(f"{point}.querySelector('title').textContent"))


def test_states_and_infinite_numbers_are_sorted_too(quiet: Browser, tmp_path: Path) -> None:
    states = (RunState.FAILED, RunState.COMPLETED, RunState.DIVERGED)
    scores = (None, math.inf, None)
    runs = [
        run("a", at, score, score, state, id=at) for at, (state, score) in enumerate(zip(states, scores, strict=True))
    ]
    runs += [run("a", 3, 5.0, 6.0, id=3), run("a", 4, 30.0, 7.0, id=4)]
    path = tmp_path / "states.html"
    path.write_text(page_of(sweep([cell("a", kernel="rbf")], runs, name="states")))
    quiet.open(path)
    table = "document.querySelector('table.runs')"

    def sorted_by(header: str) -> list[str]:
        column = f"[...{table}.tHead.rows[0].cells].findIndex((one) => one.textContent.startsWith('{header}'))"
        quiet.value(f"{table}.tHead.rows[0].cells[{column}].querySelector('button').click()")
        return quiet.value(f"[...{table}.tBodies[0].rows].map((row) => row.cells[{column}].textContent.trim())")

    words = ["completed", "completed", "completed", "diverged", "failed"]
    assert sorted_by("state") == words and sorted_by("state") == words[::-1]
    # Of a metric the better end comes first.
    assert sorted_by("valid/bleu") == ["∞", "30.00", "5.00", "–", "–"]
    assert sorted_by("valid/bleu") == ["5.00", "30.00", "∞", "–", "–"]
    assert sorted_by("test/bleu")[:2] == ["∞", "7.00"]


def test_a_title_on_somebody_elses_page_has_no_signs_that_turn_its_text() -> None:
    shown = fragment(listing(HOSTILE[4], ("t",), [], [("n", ["1"])], []))
    assert not re.search("[\u202e\u2066\u200b\x1b]", shown)


def test_without_a_script_the_page_shows_its_curves(quiet: Browser, page: Path) -> None:
    quiet.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        quiet.open(page)
        assert quiet.value("document.querySelectorAll('.curves svg').length") == 2 * 5
    finally:
        quiet.ask("Emulation.setScriptExecutionDisabled", value=False)


def test_the_same_records_give_the_same_page() -> None:
    assert page_of(record()) == page_of(record())


def test_it_asks_for_the_curves_it_shows() -> None:
    assert curves_wanted(record()) == {"valid/bleu", LOSS}


EVALUATIONS = [{"name": "longer", "settings": {"length": length}} for length in (64, 256)]
TABLES = [
    {"name": "own", "rows": ["kernel"], "columns": []},
    {"name": "lengths", "rows": ["kernel"], "columns": ["evaluation.length"]},
    {"name": "again", "rows": ["evaluation.length"], "columns": ["kernel"], "cell": "mean"},
]


def evaluated() -> SweepRecord:
    """Two cells of two runs each, with two evaluations of every run."""
    records = [cell(name, task="prediction", kernel=name) for name in ("rbf", "exponential")]
    runs = [trained for record in records for trained in seeded(record.id, 4.0, 5.0)]
    spec = records[0].spec.known
    assert spec
    evaluations: dict[int, dict[str, EvaluationRecord]] = {}
    for planned in EVALUATIONS:
        settings = EvaluationSettings.model_validate(planned["settings"])
        evaluation = resolve_evaluation(spec, EvaluationRequest("longer", settings))
        for trained in runs:
            numbers = {"loss": 1.0 + trained.seed / 10, "perplexity": 4.0 + trained.seed}
            recorded = EvaluationRecord(evaluation.id, evaluation.settings, 0.0, 9, {}, None, numbers)
            evaluations.setdefault(trained.id, {})[evaluation.id] = recorded
    record = sweep(records, runs, tables=TABLES)
    return replace(record, grid={**record.grid, "evaluations": EVALUATIONS}, evaluations=evaluations)


def test_a_run_has_a_place_for_its_test_and_for_each_of_its_evaluations():
    record = evaluated()
    page = "".join(to_html(tables(record), record, {}))
    assert "2 cells, 4 runs: 4 completed" in page
    ids = Counter(re.findall(r'\sid="([^"]*)"', page))
    assert {name: count for name, count in ids.items() if count > 1} == {}
    assert sum(name.startswith("run-") for name in ids) == 4 * (1 + len(EVALUATIONS))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links <= ids.keys()
    # The selected run of each cell and of each of its evaluations, where a table shows single runs.
    assert len({link for link in links if link.startswith("run-")}) >= 2 * (1 + len(EVALUATIONS))
