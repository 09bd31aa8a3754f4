"""`kdx serve` in a real browser, with a sweep at work; and what it refuses."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from served import Served
from waiting import GIVE_UP, wait_until

from kdx.cli.context import Context
from kdx.cli.serve import LEAST_AGE, Pages
from kdx.store.records import RunState

EXAMPLE = Path(__file__).parents[2] / "runs.db.example"
GRID = """
name: live/streams
task: prediction
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
data: {corpus: synthetic-language, train_lines: 300}
training: {steps: 1000000, batch_tokens: 256, length: 16, warmup: 3, validate_every: 100, record_every: 20}
axes: {kernel: [exponential, rbf]}
tables:
- {name: "kernels <b>", rows: kernel}
"""


@pytest.fixture
def served(terminal) -> Iterator[Served]:
    opened = Served(terminal, "--db", str(EXAMPLE))
    yield opened
    if opened.process.poll() is None:
        assert opened.close() == 130


@pytest.mark.slow
def test_a_sweep_at_work_is_seen_to_grow_in_a_browser(terminal, browser: Browser, figure):
    terminal.write("grid.yaml", GRID)
    sweep = terminal.start("sweep", "grid.yaml", "-w", "2")
    wait_until(lambda: terminal.is_at_work(since=120))
    served = Served(terminal)
    try:
        browser.open(served.address + "/")
        assert browser.value("document.querySelector('td a').textContent") == "live/streams"
        browser.value("document.querySelector('td a').click()")
        wait_until(lambda: browser.value("document.title") == "live/streams")
        wait_until(lambda: browser.value("document.querySelectorAll('#report svg').length") > 0)
        assert browser.value("document.querySelector('#report h2').textContent").startswith("kernels <b>")
        rows = "[...document.querySelector('#progress table').tBodies[0].rows]"
        steps = f"{rows}.map((row) => +row.cells[1].textContent)"
        before, revision = browser.value(steps), browser.value("document.getElementById('report').dataset.revision")
        browser.value("document.querySelector('#report details').open = true")
        wait_until(lambda: min(browser.value(steps), default=0) > max(before))
        wait_until(lambda: browser.value("document.getElementById('report').dataset.revision") != revision)
        assert browser.value("document.querySelector('#report details').open") is True
        wait_until(lambda: browser.value("document.querySelectorAll('#report .curves .mark-line path[d]').length") >= 4)
        asked = [address for address in browser.requests() if address.startswith("http")]
        assert all(address.startswith(served.address) for address in asked) and browser.complaints() == []
        sweep.send_signal(signal.SIGINT)
        assert sweep.wait(GIVE_UP) == 130
        wait_until(lambda: "interrupted" in browser.value("document.querySelector('.lead').textContent"))
        run = browser.value("document.querySelector('#progress td a').getAttribute('href')")
        browser.open(served.address + run)
        assert "attempt" in browser.value("document.querySelector('pre').textContent")
        assert "step 100" in browser.value("document.querySelectorAll('pre')[1].textContent")
    finally:
        assert served.close() == 130
    wait_until(lambda: browser.value("document.getElementById('silent').textContent") == "kdx serve does not answer")
    figure(f"steps {before} → more, {len(asked)} questions, 0 complaints")


def test_every_page_of_the_example_is_given_and_leads_to_the_others(served):
    waiting, seen = ["/"], {}
    while waiting:
        path = waiting.pop()
        status, page = served.ask(path)
        assert (status, "Traceback" in page) == (200, False), path
        seen[path] = page
        found = re.findall(r'href="(/(?:sweep|claims)/[^"#]+|/run/1)"', page)
        waiting += [each for each in dict.fromkeys(found) if each not in seen and each not in waiting]
    assert {"/", "/sweep/tsai2019/table1-mini", "/claims/tsai2019/table2-mini"} <= seen.keys()
    assert "A2-kernel" in seen["/claims/tsai2019/table2-mini"] and "<svg" in seen["/sweep/tsai2019/table1-mini"]
    part = served.ask("/sweep/tsai2019/table1-mini?progress")[1]
    assert "<svg" not in part and len(part) < len(seen["/sweep/tsai2019/table1-mini"]) / 4


def test_each_run_of_a_served_table_leads_to_its_page(served):
    page = served.ask("/sweep/tsai2019/table1-mini")[1]
    runs = set(re.findall(r'<td><a href="(/run/\d+)">', page))
    assert len(runs) == 40 and served.ask(runs.pop())[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 400, 768, 1000, 1600])
def test_a_served_page_is_never_scrolled_sideways(served, browser: Browser, width: int):
    with browser.screen(width):
        for path in ("/", "/sweep/tsai2019/table1-mini", "/claims/tsai2019/table2-mini", "/run/1"):
            browser.open(served.address + path)
            assert browser.value("document.documentElement.scrollWidth <= innerWidth"), path
        assert browser.complaints() == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sweep/none", 404),
        ("/run/999999", 404),
        ("/run/-1", 404),
        ("/run/9999999999999999999999", 404),
        ("/claims/", 404),
        ("/sweep/", 404),
        ("/etc/passwd", 404),
        ("/sweep/..%2f..%2fetc%2fpasswd", 404),
        ("/run/1%00", 404),
        ("/?progress", 200),
    ],
)
def test_what_is_not_there_is_a_few_lines(served, path, status):
    answered, text = served.ask(path)
    assert answered == status and (status == 200 or (len(text.splitlines()) < 4 and "Traceback" not in text))


def test_a_page_of_somebody_else_reads_nothing_and_nothing_can_be_changed(served):
    assert served.ask("/", Host="evil.example")[0] == 421
    assert served.ask("/", Host="evil.example:80")[0] == served.ask("/", Host="")[0] == 421
    assert served.ask("/", Host=f"localhost:{served.port}")[0] == 200
    assert served.ask("/", method="POST")[0] == served.ask("/", method="DELETE")[0] == 501
    assert served.ask("/", method="HEAD") == (200, "")
    assert served.ask("/", Host="[")[0] == 400 and served.ask(f"/run/{'9' * 5000}")[0] == 404


def test_where_other_machines_may_ask_any_name_leads_there(terminal):
    served = Served(terminal, "--db", str(EXAMPLE), "--host", "0.0.0.0")
    assert served.ask("/", Host="cluster.example")[0] == 200 and served.close() == 130


def test_a_port_in_use_and_a_missing_database_are_one_message(terminal, served):
    taken = terminal.type(f"kdx serve --db {EXAMPLE} --port {served.port}")
    assert taken.returncode == 2 and f"port {served.port}: Address already in use" in taken.stderr
    assert "--port 0 takes a free port" in taken.stderr and taken.stderr.count("\n") == 2
    elsewhere = terminal.type(f"kdx serve --db {EXAMPLE} --host 203.0.113.7")
    assert elsewhere.returncode == 2 and "cannot listen at 203.0.113.7" in elsewhere.stderr
    assert terminal.type("kdx serve").returncode == 3


def test_a_database_that_goes_away_is_said_and_comes_back(terminal):
    (terminal.folder / "runs.db").write_bytes(EXAMPLE.read_bytes())
    served = Served(terminal)
    (terminal.folder / "runs.db").rename(terminal.folder / "away")
    status, text = served.ask("/")
    assert status == 404 and "there is no results database here" in text
    (terminal.folder / "away").rename(terminal.folder / "runs.db")
    assert served.ask("/")[0] == 200 and served.close() == 130


def test_a_report_is_made_anew_only_when_runs_came_further_and_not_too_often(monkeypatch):
    made, now = [], [0.0]
    pages = Pages(Context(str(EXAMPLE)), clock=lambda: now[0])
    monkeypatch.setattr(pages, "_report", lambda *_: made.append(1) or "")
    path = "/sweep/tsai2019/table1-mini"
    pages.page(path, whole=False)
    assert made == []
    for _ in range(3):
        pages.page(path, whole=True)
        now[0] += 60
    assert made == [1]
    states = iter(range(100))
    monkeypatch.setattr("kdx.cli.serve.runs", lambda *_: [Moving(next(states))])
    pages.page(path, whole=True)
    pages.page(path, whole=True)
    assert made == [1, 1]
    now[0] += LEAST_AGE + 1
    pages.page(path, whole=True)
    assert made == [1, 1, 1]


class Moving:
    """A run that has come further each time."""

    def __init__(self, step: int) -> None:
        self.id, self.state, self.progress_step, self.invalidated = 1, RunState.RUNNING, step, None
        self.seed, self.error, self.test_score = 0, None, None
