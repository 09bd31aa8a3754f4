"""A browser to look at pages with."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A headless Chromium; without one the test is skipped, and fails in CI."""
    from browser import Browser, chromium

    program = chromium()
    with Browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
