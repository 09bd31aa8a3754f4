"""The site of the documentation: every page is in it, its links lead somewhere, and it loads nothing from elsewhere."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def listed(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for inner in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(inner)


def test_the_navigation_has_the_pages_of_each_room_in_the_order_of_its_index():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    for room, tab in zip(("learn", "do", "reference", "understand"), nav[1:], strict=True):
        index = (DOCS / room / "README.md").read_text(encoding="utf-8")
        pages = re.findall(r"^- \[.*?\]\(([\w-]+\.md)\)", index, re.MULTILINE)
        assert [*listed(tab)] == [f"docs/{room}/{page}" for page in ("README.md", *pages)]


class Page(HTMLParser):
    """What a page has, loads and links."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids, self.loads, self.links = {""}, set[str](), set[str]()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids.add(given.get("id", ""))
        addresses = {given[name] for name in ("href", "src", "srcset") if name in given}
        (self.links if tag == "a" else self.loads).update(addresses)


@pytest.fixture(scope="module")
def site() -> Path:
    # The environment is the one that runs the tests.
    command = ["make", "docs", f"BIN={Path(sys.executable).parent}", "--assume-old=.venv/installed-dev"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "site"


@pytest.mark.slow
def test_every_page_is_on_the_site_and_every_link_leads_somewhere(site):
    pages = {file: Page(file) for file in site.rglob("*.html") if file.name != "404.html"}
    sources = {site / page.relative_to(ROOT).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {file.with_name("index.html") if file.stem == "README" else file for file in sources} <= pages.keys()
    broken = []
    for file, page in pages.items():
        for address in page.links | page.loads:
            path, _, anchor = unquote(address).partition("#")
            target = (file.parent / path).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            exists = anchor in pages[target].ids if target in pages else target.is_file()
            if ":" not in path and not exists:
                broken.append((file.name, address))
    assert broken == []


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    loads = {address for file in site.rglob("*.html") for address in Page(file).loads}
    loads |= {address for file in site.rglob("*.css") for address in re.findall(r"url\(([^)]*)\)", file.read_text())}
    assert any(address.endswith(".css") for address in loads)
    assert [address for address in loads if re.match(r"['\"]?(https?:)?//", address)] == []
