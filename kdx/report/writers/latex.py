"""A sheet as LaTeX, for packages that every distribution has, in one size of type.

A short caption stands above the table, the notes below. A table that is wider than the text continues below with its
row names repeated. A table that is then higher than a page is a longtable instead of a float: it breaks across pages
with its head repeated, and two-column text does not allow it. It is turned where it then need not continue below.
Widths are estimated from the characters, for the text of the article class.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kdx.report.fit import Column, are_words, column, fit, fold, of_listing
from kdx.report.sheet import Score, Sheet, beside_scores, spans
from kdx.report.sheets.listings import listings
from kdx.report.sheets.scores import scores
from kdx.report.table.table import Table
from kdx.report.writers.tex import DIGIT, EM, breakable_tex, raised, spelled, tex, width_of
from kdx.sanitize import sanitize

PREAMBLE = "% \\usepackage{array,booktabs,longtable,pdflscape}\n"
"""The packages that a document needs, for its preamble."""

_TEXT, _TURNED, _GAP = int(32.5 * EM), 50 * EM, int(1.2 * EM)
"""Width of the text, of a turned page, and of the gap between two columns, in the article class at any size."""
_PAGE, _RULES = 43, 1.5
"""Lines of a page, and lines that the rules of a table take."""
_SMALL = 0.8
"""Size of the notes' type, relative to that of the text."""
_BESIDE = EM, EM / 2
"""Widths of the gaps between a score and the text beside it, and between the mean and what follows it."""
_BOLD = 1.15
"""Width of bold type, relative to that of upright type."""


def to_latex(table: Table, *, statistics: bool = False, full: bool = False, made_by: str = "") -> str:
    """The table, followed by its listings as tables of their own.

    Args:
        statistics: see `kdx.report.sheets.listings.listings`.
        full: see `kdx.report.sheets.notes.caption`.
        made_by: the command that makes it (`kdx.report.made_by`), for a comment before it; empty for none.
    """
    sheets = (scores(table, full=full), *listings(table, statistics=statistics))
    comment = f"% {sanitize(made_by)}\n" if made_by else ""
    return comment + "\n".join(map(sheet_to_latex, sheets))


def sheet_to_latex(sheet: Sheet) -> str:
    """A float if it fits on one page, else a table that breaks across pages, turned if it then needs no pieces.

    Its title and caption stand above, its notes below.
    """
    title = f"\\textbf{{{breakable_tex(sheet.title)}}}" if sheet.of_scores else breakable_tex(sheet.title)
    title += f": {breakable_tex(sheet.caption)}" if sheet.caption else ""
    title = title if title.endswith((".", "?", "!")) else f"{title}."
    notes = [sanitize(note) for note in sheet.notes]
    below = ["{\\footnotesize\\sloppy\\parindent=0pt", *(f"{breakable_tex(note)}\\par" for note in notes), "}"]
    tabulars = list(_tabulars(sheet, _TEXT))
    if not tabulars:
        return "\n".join(("\\par\\medskip\\noindent", f"{title}\\par", *below, "\\medskip\n"))
    above = [f"\\caption[{tex(sheet.caption or sheet.title)}]{{{title}}}", f"\\label{{{label(*sheet.key)}}}"]
    lines = len(fold(title, _TEXT, width_of)) + _SMALL * sum(
        len(fold(note, _TEXT / _SMALL, width_of)) for note in notes
    )
    if sum(tabular.height + _RULES for tabular in tabulars) + lines <= _PAGE:
        start = "\\begin{table}[!ht]\n\\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}"
        body = "\n\\par\\medskip\n".join(map(_tabular, tabulars))
        return "\n".join((start, *above, "{\\centering", body, "\\par\\smallskip}", *below, "\\end{table}\n"))
    group = "begingroup", "endgroup\\bigskip"
    turned = list(_tabulars(sheet, _TURNED)) if len(tabulars) > 1 else []
    if len(turned) == 1:
        tabulars, group = turned, ("begin{landscape}", "end{landscape}")
    # Each longtable counts as a table of its own.
    body = "\n\\addtocounter{table}{-1}\n".join((_longtable(tabulars[0], above), *map(_longtable, tabulars[1:])))
    return "\n".join((f"\\{group[0]}\\setlength{{\\LTpost}}{{\\smallskipamount}}", body, *below, f"\\{group[1]}\n"))


def label(*names: str) -> str:
    """The LaTeX label of a table, or of a listing that belongs to one."""
    return ":".join(("tab", *(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "table" for name in names)))


@dataclass(frozen=True)
class _Tabular:
    """The rows of a sheet, or a piece of them that fits the width of the text, as LaTeX."""

    columns: str
    """The column specification of tabular."""
    across: int
    """Number of columns."""
    head: Sequence[str]
    rows: Sequence[str]
    height: float
    """Height in lines."""


@dataclass(frozen=True)
class _Words:
    """A column of texts, the header first; those wider than the column are folded."""

    texts: Sequence[str]
    width: float
    side: str
    """Its alignment: `l` or `r`."""
    across = 1

    @property
    def spec(self) -> str:
        """The column specification of tabular."""
        return _paragraph(self.width, self.side) if self._folds else self.side

    def written(self, index: int) -> list[str]:
        """The text of one row, as LaTeX; row 0 is the header."""
        return [breakable_tex(self.texts[index], self.width) if self._folds else tex(self.texts[index])]

    def height(self, index: int) -> int:
        """The lines that the text of one row takes."""
        return len(fold(self.texts[index], self.width, width_of))

    @cached_property
    def _folds(self) -> bool:
        return any(width_of(text) > self.width for text in self.texts)


@dataclass(frozen=True)
class _Scores:
    """A column of scores, and further ones for the texts beside them where any place has some."""

    places: Sequence[Sequence[str]]
    """The parts of each place, as LaTeX."""
    across: int
    """Columns of the tabular: 1, and more with the text beside the scores."""
    spec: str
    """The column specification of tabular."""
    width: float

    def written(self, index: int) -> Sequence[str]:
        """The parts of one row, as LaTeX; the header spans columns and has a line of its own."""
        return self.places[index - 1] if index else ()

    def height(self, index: int) -> int:
        """Each place is one line."""
        return 1 if index else 0


def _tabulars(sheet: Sheet, width: float) -> Iterator[_Tabular]:
    """The body of a sheet, in as many pieces as the width needs; none where a listing has no rows."""
    names, count = sheet.names, len(sheet.headers)
    first_score = names if sheet.of_scores else count
    headers = [tuple(map(sanitize, sheet.levels(at))) for at in range(count)]
    texts = [[headers[at][-1], *map(sanitize, sheet.texts(at))] for at in range(first_score)]
    placed = {at: _scores(sheet.scores(at)) for at in range(first_score, count)}
    columns: list[Column] = [
        of_listing(column_texts[0], column_texts[1:], width_of, names=at < names)
        for at, column_texts in enumerate(texts)
    ]
    # A header over several columns is folded to their width.
    columns += [column(headers[at][-1:], (), width_of).at_least(part.width) for at, part in placed.items()]
    for piece in fit(columns, names, width, _GAP) if sheet.rows or sheet.of_scores else []:
        shown = [*range(names), *(index + names for index in piece.columns)]
        parts: list[_Words | _Scores] = []
        for at, wide in zip(shown, piece.widths, strict=True):
            if at in placed:
                parts.append(placed[at])
            else:
                parts.append(_Words(texts[at], wide, "l" if at < names or are_words(texts[at][1:]) else "r"))
        head, height = _head(parts, [headers[at] for at in shown], piece.widths, names)
        rows = []
        for index in range(1, len(sheet.rows) + 1):
            row_names = sheet.row_names(index - 1)
            if sheet.of_scores and index > 1 and names > 1 and row_names[0]:
                rows.append("\\addlinespace")
                height += 0.5
            blank = [at < names and not row_names[at] for at in shown]
            written = ([""] if left else part.written(index) for part, left in zip(parts, blank, strict=True))
            rows.append(_line(part for cells in written for part in cells))
            height += max([part.height(index) for part, left in zip(parts, blank, strict=True) if not left], default=1)
        yield _Tabular("".join(part.spec for part in parts), sum(part.across for part in parts), head, rows, height)


def _head(
    columns: Sequence[_Words | _Scores], headers: Sequence[tuple[str, ...]], widths: Sequence[float], names: int
) -> tuple[list[str], float]:
    """The head of a table, one line for each level with a rule below all but the innermost; and its height in lines.

    A header of scores spans what stands beside them, and neighbours that share it.
    """
    left, right = columns[:names], columns[names:]
    if not any(isinstance(column, _Scores) for column in right):
        return [_line(part for column in columns for part in column.written(0))], max(
            column.height(0) for column in columns
        )
    levels = max(map(len, headers[names:]))
    lines, height = [], 0.0
    for level in range(levels):
        innermost = level == levels - 1
        parts = [part for column in left for part in (column.written(0) if innermost else [""])]
        heights = [column.height(0) for column in left] if innermost else []
        rules, at, first = [], names + 1, 0
        for word, count in spans(headers[names:], level):
            across = sum(column.across for column in right[first : first + count])
            room = sum(widths[names:][first : first + count]) + _GAP * (count - 1)
            spec = "c" if width_of(word) <= room else _paragraph(room, "c")
            parts.append(
                f"\\multicolumn{{{across}}}{{{spec}}}{{{tex(word) if spec == 'c' else breakable_tex(word, room)}}}"
            )
            heights.append(len(fold(word, room, width_of)))
            rules.append(f"\\cmidrule(lr){{{at}-{at + across - 1}}}")
            at, first = at + across, first + count
        lines.append(_line(parts))
        height += max(heights)
        if not innermost:
            lines.append("".join(rules))
    return lines, height


def _scores(places: Sequence[Score]) -> _Scores:
    """A column as LaTeX, its numbers aligned."""
    more = [text.replace("-", "−") for text in beside_scores(places, blank=DIGIT)]
    # Columns of the tabular: scores, means and what follows them, as far as any place has them.
    has_means = any(place.mean for place in places)
    has_more = any(place.aligned and beside for place, beside in zip(places, more, strict=True))
    across = 1 + has_means + has_more
    written, states = [], [0.0]
    for place, beside in zip(places, more, strict=True):
        score, mean = (spelled(text.replace("-", "−")) for text in (place.score, place.mean))
        if not place.aligned and place.score:
            text = ", ".join(filter(None, (score, spelled(beside))))
            written.append([f"\\multicolumn{{{across}}}{{l}}{{{text}}}"] if across > 1 else [text])
            states.append(width_of(f"{place.score}, {beside}"))
            continue
        score, mean = (score, _marked(mean, place)) if place.marks_mean else (_marked(score, place), mean)
        written.append([score, *[mean] * has_means, *[spelled(beside)] * has_more])
    widths = [
        max((_BOLD * width_of(place.score) for place in places if place.aligned), default=0.0),
        *[max(_BOLD * width_of(place.mean) for place in places)] * has_means,
        *[max(width_of(beside) for place, beside in zip(places, more, strict=True) if place.aligned)] * has_more,
    ]
    spec = "r@{\\quad}" + "r@{\\enspace}" * has_means + "l" * has_more if across > 1 else "r"
    return _Scores(written, across, spec, max(sum(widths) + sum(_BESIDE[: across - 1]), *states))


def _marked(number: str, place: Score) -> str:
    if place.best:
        return f"\\textbf{{{number}}}"
    return f"{number}\\rlap{{{raised(place.sign)}}}" if place.sign else number


def _tabular(tabular: _Tabular) -> str:
    lines = ["\\toprule", *tabular.head, "\\midrule", *tabular.rows, "\\bottomrule"]
    return "\n".join((f"\\begin{{tabular}}{{{tabular.columns}}}", *lines, "\\end{tabular}"))


def _longtable(tabular: _Tabular, above: Sequence[str] = ()) -> str:
    """The caption stands above the first page of the first piece; every other page says that the table continues."""
    head = ["\\toprule", *tabular.head, "\\midrule"]
    continued = f"\\multicolumn{{{tabular.across}}}{{@{{}}l}}{{\\tablename~\\thetable, continued}}\\\\"
    return "\n".join(
        (
            f"\\begin{{longtable}}{{{tabular.columns}}}",
            *([*above[:-1], f"{above[-1]}\\\\"] if above else [continued]),
            *head,
            "\\endfirsthead",
            continued,
            *head,
            "\\endhead",
            "\\midrule",
            f"\\multicolumn{{{tabular.across}}}{{r@{{}}}}{{continued on the next page}}\\\\",
            "\\endfoot",
            "\\bottomrule",
            "\\endlastfoot",
            *tabular.rows,
            "\\end{longtable}",
        )
    )


def _paragraph(width: float, side: str) -> str:
    """The column specification of tabular for a column whose texts are folded."""
    ragged = {"l": "raggedright", "r": "raggedleft", "c": "centering"}[side]
    return f">{{\\{ragged}\\arraybackslash}}p{{{width / EM:.2f}em}}"


def _line(parts: Iterable[str]) -> str:
    return f"{' & '.join(parts)} \\\\"
