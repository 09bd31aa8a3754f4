"""A table as LaTeX, for the packages booktabs and graphicx, which every distribution has.

Names come out as plain text under pdfTeX, too, whose fonts know little beyond Latin: accents are put together, and a
letter that is not to be had stands as its number, such as U+65E5.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from kdx.report.cells import Cell
from kdx.report.inert import inert
from kdx.report.listings import Listing, listings
from kdx.report.table import Table
from kdx.report.wording import beside_scores, caption, column_headers, mark, spans, unless_repeated, words

PREAMBLE = "% \\usepackage{booktabs,graphicx}\n"
"""What has to stand before the document begins."""

_FIT = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
"""Makes what is wider than the text as wide as that, and leaves anything else as it is."""

_DIGIT = "\u2007"  # a blank as wide as a digit
_SIGNS = {
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "`": "\\textasciigrave{}",
    # Active under babel in German and others.
    '"': "\\symbol{34}",
    # Behind the end of a row they would be its options.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    "–": "\\textendash{}",
    "—": "\\textemdash{}",
    "‘": "\\textquoteleft{}",
    "’": "\\textquoteright{}",
    "“": "\\textquotedblleft{}",
    "”": "\\textquotedblright{}",
    "…": "\\ldots{}",
    "§": "\\S{}",
    "ß": "\\ss{}",
    "æ": "\\ae{}",
    "Æ": "\\AE{}",
    "œ": "\\oe{}",
    "Œ": "\\OE{}",
    "ø": "\\o{}",
    "Ø": "\\O{}",
    "ł": "\\l{}",
    "Ł": "\\L{}",
    "ı": "\\i{}",
    _DIGIT: "\\phantom{0}",
}
_MATHS = {
    "†": "\\dagger",
    "‡": "\\ddagger",
    "±": "\\pm",
    "×": "\\times",
    "·": "\\cdot",
    "−": "-",
    "∞": "\\infty",
    "≤": "\\le",
    "≥": "\\ge",
    "≈": "\\approx",
    "↑": "\\uparrow",
    "↓": "\\downarrow",
    "→": "\\rightarrow",
    "←": "\\leftarrow",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u ",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r ",
    "\u030b": "H ",
    "\u030c": "v ",
    "\u0323": "d ",
    "\u0327": "c ",
}
# Two in a row would be a dash or a double quote.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')")
# The others look like Latin ones, and have no command.
_GREEK = re.compile(
    "alpha|beta|[Gg]amma|[Dd]elta|epsilon|zeta|eta|[Tt]heta|iota|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i|rho|[Ss]igma|tau|"
    "[Uu]psilon|[Pp]hi|chi|[Pp]si|[Oo]mega"
)


def to_latex(table: Table, *, statistics: bool = False, full: bool = False) -> str:
    """The table as a float with the caption that goes with the numbers, and what belongs to it in floats of its own.

    Args:
        statistics: see `kdx.report.listings.listings`.
        full: see `kdx.report.wording.caption`.
    """
    names = len(table.row_factors)
    columns = [
        _column([row[index] for row in table.body], show_n=table.n is None) for index in range(len(table.columns))
    ]
    widths = [width for _, width in columns]
    lines = [*_headers(table, widths), "\\midrule"]
    for row in range(len(table.rows)):
        its = unless_repeated(table.rows, row)
        if row and names > 1 and its[0]:
            lines.append("\\addlinespace")
        lines.append(_line([*map(tex, its), *(part for places, _ in columns for part in places[row])]))
    numbers = "".join("r@{\\quad}l" if width == 2 else "r" for width in widths)
    said = caption(table, best="Bold", full=full)
    title = f"\\textbf{{{tex(table.name)}}}" + (f": {tex(table.caption)}" if table.caption else "")
    head = _caption(tex(table.caption or table.name), title, said)
    body = _float([head, f"\\label{{{label(table.name)}}}"], f"{'l' * names}{numbers}", lines)
    below = "".join(f"\n{listing_to_latex(one)}" for one in listings(table, statistics=statistics))
    return body + below


def listing_to_latex(listing: Listing) -> str:
    """The listing as a float, its notes in the caption."""
    head = _caption(tex(listing.title), tex(listing.title), listing.notes)
    lines = [_line(map(tex, listing.headers)), "\\midrule", *(_line(map(tex, row)) for row in listing.rows)]
    columns = "l" * listing.names + "r" * (len(listing.headers) - listing.names)
    return _float([head, f"\\label{{{label(*listing.key)}}}"], columns, lines if listing.rows else [])


def label(*names: str) -> str:
    """By which a text refers to a table, or to what belongs to one."""
    return ":".join(("tab", *(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "table" for name in names)))


def tex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return _spelled(inert(text))


def _spelled(text: str) -> str:
    return _LIGATURE.sub("{}", "".join(map(_character, unicodedata.normalize("NFC", text))))


def _character(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character in _MATHS:
        return f"${_MATHS[character]}$"
    if character.isascii():
        return character
    apart = unicodedata.normalize("NFD", character)
    base, accents = apart[0], apart[1:]
    if accents and base.isascii() and all(accent in _ACCENTS for accent in accents):
        letter = _character(base)
        for accent in accents:
            letter = f"{{\\{_ACCENTS[accent]}{letter}}}"
        return letter
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if greek:
        letter = greek[2].lower().replace("lamda", "lambda")
        letter = letter if greek[1] == "SMALL" else letter.capitalize()
        if _GREEK.fullmatch(letter):
            return f"$\\{letter}$"
    return f"U+{ord(character):04X}"


def _headers(table: Table, widths: Sequence[int]) -> list[str]:
    """One line a level, its words over what they head; rules below all but the innermost."""
    headers, names = column_headers(table), len(table.row_factors)
    levels = max(map(len, headers), default=1)
    lines = []
    for level in range(levels):
        innermost = level == levels - 1
        parts = [tex(factor) for factor in table.row_factors] if innermost else [""] * names
        rules, at, column = [], names + 1, 0
        for word, count in spans(headers, level):
            width = sum(widths[column : column + count])
            parts.append(f"\\multicolumn{{{width}}}{{c}}{{{tex(word)}}}")
            rules.append(f"\\cmidrule(lr){{{at}-{at + width - 1}}}")
            at, column = at + width, column + count
        lines.append(_line(parts))
        if not innermost:
            lines.append("".join(rules))
    return lines


def _column(cells: Sequence[Cell | None], *, show_n: bool) -> tuple[list[list[str]], int]:
    """What each place of a column has: its score and, where any place has more, that too; and how many that makes."""
    parts = [words(cell, show_n=show_n) for cell in cells]
    more = [text.replace("-", "−") for text in beside_scores(parts, blank=_DIGIT)]
    wide = any(part.aligned and beside for part, beside in zip(parts, more, strict=True))
    places = []
    for cell, part, beside in zip(cells, parts, more, strict=True):
        score = _spelled(part.score.replace("-", "−"))
        if not part.aligned and part.score:
            told = ", ".join(filter(None, (score, _spelled(beside))))
            places.append([f"\\multicolumn{{2}}{{l}}{{{told}}}"] if wide else [told])
            continue
        if cell and cell.best:
            score = f"\\textbf{{{score}}}"
        elif sign := mark(cell):
            score += f"\\rlap{{$^{_MATHS[sign]}$}}"
        places.append([score, _spelled(beside)] if wide else [score])
    return places, 2 if wide else 1


def _caption(short: str, title: str, said: Iterable[str]) -> str:
    end = "" if title.endswith((".", "?", "!")) else "."
    return f"\\caption[{short}]{{{' '.join((title + end, *map(tex, said)))}}}"


def _float(head: Sequence[str], columns: str, lines: Sequence[str]) -> str:
    tabular = [f"{_FIT}\n\\begin{{tabular}}{{{columns}}}", "\\toprule", *lines, "\\bottomrule", "\\end{tabular}}"]
    return "\n".join(("\\begin{table}", "\\centering", *head, *(tabular if lines else []), "\\end{table}\n"))


def _line(parts: Iterable[str]) -> str:
    return f"{' & '.join(parts)} \\\\"
