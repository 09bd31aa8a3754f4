"""Draws the picture of the README from the README: its grid beside its table. `python -m tests.picture` writes it.

Rich's own export, without the web font that it names: each reader's own monospaced font is drawn at the same width.
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
from rich.text import Text

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


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in THEMES:
        file(name).write_text(picture(name), encoding="utf-8")
