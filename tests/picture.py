"""Draws the pictures of the documentation. `python -m tests.picture` writes them.

That of the README has its grid beside its table, by rich's own export, without the web font that it names: each
reader's own monospaced font is drawn at the same width. Those of the findings are the tables of the example as the
page of `kdx report --format html` draws them.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
from rich.text import Text

from kdx.report.tables import tables
from kdx.report.writers.html.figures import figures
from kdx.store.database import open_database
from kdx.store.reading import load_sweep

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FOLDER = ROOT / "docs" / "pictures"
# How a theme is named → its colours, and how it colours YAML.
THEMES = {"light": (DEFAULT_TERMINAL_THEME, "default"), "dark": (MONOKAI, "monokai")}
WIDTH = 120
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def grid_and_table() -> tuple[str, str]:
    """What the README shows of a grid and its table, without its legend."""
    text = README.read_text(encoding="utf-8")
    grid = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    table = re.search(r"^(kdx report order\n)?(order\n─+\n.*?\n─+\n.*?\n─+\n)", text, re.DOTALL | re.MULTILINE)
    assert grid and table
    return grid[1].rstrip(), table[2].rstrip()


def picture(theme: str) -> str:
    """The SVG of one theme."""
    colours, style = THEMES[theme]
    grid, table = grid_and_table()
    shown = Text(f"$ kdx report order\n\n{table}")
    shown.highlight_regex(r"\S+(?:\.\d+)?\* ± .*", "bold")
    sides = Table.grid(padding=(0, 3))
    sides.add_row(Syntax(grid, "yaml", theme=style, background_color="default"), shown)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(sides)
    svg = FONT.sub("", console.export_svg(title="kdx", theme=colours, unique_id=f"kdx-{theme}"))
    return re.sub(r"font-family: ?[^;]+;", "font-family: ui-monospace, Menlo, Consolas, monospace;", svg)


def file(theme: str) -> Path:
    """Where the picture of a theme lies."""
    return FOLDER / f"grid-to-table-{theme}.svg"


def findings() -> Iterator[tuple[Path, str]]:
    """The file and SVG of each panel of the tables of the example, with the colours of the page, light and dark."""
    style = (ROOT / "kdx" / "report" / "writers" / "html" / "page.css").read_text(encoding="utf-8")
    colours = "".join(
        re.findall(r"^:root \{.*?^\}\n@media \(prefers-color-scheme.*?^\}\n", style, re.DOTALL | re.MULTILINE)
    )
    background = "svg { background: var(--paper); font-family: sans-serif; }"
    with open_database(ROOT / "runs.db.example", write=False) as database:
        names = [f"tsai2019/table{number}-mini" for number in (1, 2, 3, 4)]
        names += ["modern/tsai2019-table1-mini", "controlled/positions-tuned-mini"]
        sweeps = [load_sweep(database, name) for name in names]
    for sweep in sweeps:
        for table in tables(sweep):
            for number, svg in enumerate(next(figures(table, sweep))["svgs"], 1):
                linkless = re.sub(r"</?a\b[^>]*>", "", svg)
                # To a thousandth of a pixel a picture is the same on every processor.
                rounded = re.sub(r"-?\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}", linkless)
                drawn = re.sub(r"(<svg[^>]*>)", rf"\1<style>{colours}{background}</style>", rounded, count=1)
                yield FOLDER / f"{sweep.name.replace('/', '-')}-{table.layout.name}-{number}.svg", drawn


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in THEMES:
        file(name).write_text(picture(name), encoding="utf-8")
    for path, drawn in findings():
        path.write_text(drawn, encoding="utf-8")
