"""A table as LaTeX, for packages that every distribution has, in one size of type.

A short caption stands above the table, the notes below. A table that is wider than the text continues below with its
row names repeated. A table that is then higher than a page is a longtable instead of a float: it breaks across pages
with its head repeated, and two-column text does not allow it. It is turned where it then need not continue below.
Widths are estimated from the characters, for the text of the article class.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from kdx.report.render.columns import are_words, column, fit, fold, of_listing
from kdx.report.render.latex.characters import DIGIT, EM, breakable_tex, raised, spelled, tex, width_of
from kdx.report.render.listings.listing import Listing
from kdx.report.render.listings.table import listings
from kdx.report.render.wording import beside_scores, caption, column_headers, sign, spans, unless_repeated, words
from kdx.report.table.comparisons import Mark
from kdx.report.table.table import Table
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


def to_latex(table: Table, *, statistics: bool = False, full: bool = False) -> str:
    """The table with a short caption above and its notes below, followed by its listings as tables of their own.

    Args:
        statistics: see `kdx.report.render.listings.table.listings`.
        full: see `kdx.report.render.wording.caption`.
    """
    title = f"\\textbf{{{breakable_tex(table.layout.name)}}}" + (
        f": {breakable_tex(table.layout.caption)}" if table.layout.caption else ""
    )
    head = _Head(tex(table.layout.caption or table.layout.name), title, label(table.layout.name))
    body = _set(head, partial(_tabulars, table), caption(table, best="Bold", full=full))
    return body + "".join(f"\n{listing_to_latex(one)}" for one in listings(table, statistics=statistics))


def listing_to_latex(listing: Listing) -> str:
    """The listing with its title above and its notes below."""
    head = _Head(tex(listing.title), breakable_tex(listing.title), label(*listing.key))
    return _set(head, partial(_tabulars_of, listing), listing.notes)


def label(*names: str) -> str:
    """The LaTeX label of a table, or of a listing that belongs to one."""
    return ":".join(("tab", *(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "table" for name in names)))


@dataclass(frozen=True)
class _Head:
    """The caption and label above a table, as LaTeX."""

    short: str
    """Its title in a list of tables."""
    title: str
    label: str


@dataclass(frozen=True)
class _Tabular:
    """A table body that fits the width of the text, as LaTeX."""

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
    """A column of texts; those wider than the column are folded."""

    texts: Sequence[str]
    width: float
    side: str
    """Its alignment: `l` or `r`."""

    @property
    def spec(self) -> str:
        """The column specification of tabular."""
        return _paragraph(self.width, self.side) if self._folds else self.side

    def written(self, index: int) -> str:
        """The text of one row, as LaTeX."""
        return breakable_tex(self.texts[index], self.width) if self._folds else tex(self.texts[index])

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
    columns: str
    """Their specification."""
    width: float


def _tabulars(table: Table, width: float) -> Iterator[_Tabular]:
    """The body of a table, in as many pieces as the width needs."""
    names = [
        [sanitize(word) for word in (factor, *(row[level] for row in table.layout.rows))]
        for level, factor in enumerate(table.layout.row_factors)
    ]
    headers = [tuple(map(sanitize, header)) for header in column_headers(table.layout)]
    scores = [_scores(table, index) for index in range(len(headers))]
    widths = [column(its, (), width_of) for its in names]
    # A header over several columns is folded to their width.
    widths += [column(one[-1:], (), width_of).at_least(its.width) for one, its in zip(headers, scores, strict=True)]
    for piece in fit(widths, len(names), width, _GAP):
        left = [_Words(its, wide, "l") for its, wide in zip(names, piece.widths, strict=False)]
        right = [scores[index] for index in piece.columns]
        head, height = _headers(left, right, [headers[index] for index in piece.columns], piece.widths[len(left) :])
        rows = []
        for index in range(len(table.layout.rows)):
            shown = unless_repeated(table.layout.rows, index)
            if index and len(left) > 1 and shown[0]:
                rows.append("\\addlinespace")
                height += 0.5
            row = [one.written(index + 1) if word else "" for one, word in zip(left, shown, strict=True)]
            rows.append(_line([*row, *(part for one in right for part in one.places[index])]))
            height += max([one.height(index + 1) for one, word in zip(left, shown, strict=True) if word], default=1)
        columns = [*(one.spec for one in left), *(one.columns for one in right)]
        yield _Tabular("".join(columns), len(left) + sum(one.across for one in right), head, rows, height)


def _tabulars_of(listing: Listing, width: float) -> Iterator[_Tabular]:
    """The rows of a listing, in as many pieces as the width needs; none where there are no rows."""
    texts = [[sanitize(row[at]) for row in (listing.headers, *listing.rows)] for at in range(len(listing.headers))]
    names = listing.names
    widths = [of_listing(header, its, width_of, names=at < names) for at, (header, *its) in enumerate(texts)]
    for piece in fit(widths, names, width, _GAP) if listing.rows else []:
        shown = [*range(names), *(index + names for index in piece.columns)]
        columns = [
            _Words(texts[at], wide, "l" if at < names or are_words(texts[at][1:]) else "r")
            for at, wide in zip(shown, piece.widths, strict=True)
        ]
        head, *rows = (_line(one.written(index) for one in columns) for index in range(1 + len(listing.rows)))
        height = sum(max(one.height(index) for one in columns) for index in range(1 + len(listing.rows)))
        yield _Tabular("".join(one.spec for one in columns), len(columns), [head], rows, height)


def _headers(
    names: Sequence[_Words], scores: Sequence[_Scores], headers: Sequence[tuple[str, ...]], widths: Sequence[float]
) -> tuple[list[str], float]:
    """The head of a table, one line for each level with a rule below all but the innermost; and its height in lines."""
    levels = max(map(len, headers), default=1)
    lines, height = [], 0.0
    for level in range(levels):
        innermost = level == levels - 1
        parts = [one.written(0) if innermost else "" for one in names]
        heights = [one.height(0) for one in names] if innermost else []
        rules, at, first = [], len(names) + 1, 0
        for word, count in spans(headers, level):
            across = sum(one.across for one in scores[first : first + count])
            room = sum(widths[first : first + count]) + _GAP * (count - 1)
            spec = "c" if width_of(word) <= room else _paragraph(room, "c")
            parts.append(
                f"\\multicolumn{{{across}}}{{{spec}}}{{{tex(word) if spec == 'c' else breakable_tex(word, room)}}}"
            )
            heights.append(len(fold(word, room, width_of)))
            rules.append(f"\\cmidrule(lr){{{at}-{at + across - 1}}}")
            at, first = at + across, first + count
        lines.append(_line(parts))
        height += max(heights, default=1)
        if not innermost:
            lines.append("".join(rules))
    return lines, height


def _scores(table: Table, index: int) -> _Scores:
    """A column as LaTeX, its numbers aligned."""
    cells = table.layout.column(index)
    marks = [table.marks.get((row, index)) for row in range(len(cells))]
    parts = [words(cell, show_n=table.layout.n is None) for cell in cells]
    more = [text.replace("-", "−") for text in beside_scores(parts, blank=DIGIT)]
    # Columns of the tabular: scores, means and what follows them, as far as any place has them.
    has_means = any(part.mean for part in parts)
    has_more = any(part.aligned and beside for part, beside in zip(parts, more, strict=True))
    across = 1 + has_means + has_more
    places, states = [], [0.0]
    for mark, part, beside in zip(marks, parts, more, strict=True):
        score, mean = (spelled(text.replace("-", "−")) for text in (part.score, part.mean))
        if not part.aligned and part.score:
            text = ", ".join(filter(None, (score, spelled(beside))))
            places.append([f"\\multicolumn{{{across}}}{{l}}{{{text}}}"] if across > 1 else [text])
            states.append(width_of(f"{part.score}, {beside}"))
            continue
        score, mean = (score, _marked(mean, mark)) if part.marks_mean else (_marked(score, mark), mean)
        places.append([score, *[mean] * has_means, *[spelled(beside)] * has_more])
    widths = [
        max((_BOLD * width_of(part.score) for part in parts if part.aligned), default=0.0),
        *[max(_BOLD * width_of(part.mean) for part in parts)] * has_means,
        *[max(width_of(beside) for part, beside in zip(parts, more, strict=True) if part.aligned)] * has_more,
    ]
    columns = "r@{\\quad}" + "r@{\\enspace}" * has_means + "l" * has_more if across > 1 else "r"
    return _Scores(places, across, columns, max(sum(widths) + sum(_BESIDE[: across - 1]), *states))


def _marked(number: str, mark: Mark | None) -> str:
    if mark is Mark.BEST:
        return f"\\textbf{{{number}}}"
    return f"{number}\\rlap{{{raised(behind)}}}" if (behind := sign(mark)) else number


def _set(head: _Head, pieces: Callable[[float], Iterable[_Tabular]], notes: Sequence[str]) -> str:
    """A float if it fits on one page, else a table that breaks across pages, turned if it then needs no pieces.

    Args:
        pieces: the tabulars within a width.
    """
    sanitized = [sanitize(note) for note in notes]
    below = ["{\\footnotesize\\sloppy\\parindent=0pt", *(f"{breakable_tex(note)}\\par" for note in sanitized), "}"]
    title = head.title if head.title.endswith((".", "?", "!")) else f"{head.title}."
    tabulars = list(pieces(_TEXT))
    if not tabulars:
        return "\n".join(("\\par\\medskip\\noindent", f"{title}\\par", *below, "\\medskip\n"))
    above = [f"\\caption[{head.short}]{{{title}}}", f"\\label{{{head.label}}}"]
    lines = len(fold(title, _TEXT, width_of)) + _SMALL * sum(
        len(fold(note, _TEXT / _SMALL, width_of)) for note in sanitized
    )
    if sum(one.height + _RULES for one in tabulars) + lines <= _PAGE:
        start = "\\begin{table}[!ht]\n\\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}"
        body = "\n\\par\\medskip\n".join(map(_tabular, tabulars))
        return "\n".join((start, *above, "{\\centering", body, "\\par\\smallskip}", *below, "\\end{table}\n"))
    group = "begingroup", "endgroup\\bigskip"
    turned = list(pieces(_TURNED)) if len(tabulars) > 1 else []
    if len(turned) == 1:
        tabulars, group = turned, ("begin{landscape}", "end{landscape}")
    # Each longtable counts as a table of its own.
    body = "\n\\addtocounter{table}{-1}\n".join((_longtable(tabulars[0], above), *map(_longtable, tabulars[1:])))
    return "\n".join((f"\\{group[0]}\\setlength{{\\LTpost}}{{\\smallskipamount}}", body, *below, f"\\{group[1]}\n"))


def _tabular(one: _Tabular) -> str:
    lines = ["\\toprule", *one.head, "\\midrule", *one.rows, "\\bottomrule"]
    return "\n".join((f"\\begin{{tabular}}{{{one.columns}}}", *lines, "\\end{tabular}"))


def _longtable(one: _Tabular, above: Sequence[str] = ()) -> str:
    """The caption stands above the first page of the first piece; every other page says that the table continues."""
    head = ["\\toprule", *one.head, "\\midrule"]
    continued = f"\\multicolumn{{{one.across}}}{{@{{}}l}}{{\\tablename~\\thetable, continued}}\\\\"
    return "\n".join(
        (
            f"\\begin{{longtable}}{{{one.columns}}}",
            *([*above[:-1], f"{above[-1]}\\\\"] if above else [continued]),
            *head,
            "\\endfirsthead",
            continued,
            *head,
            "\\endhead",
            "\\midrule",
            f"\\multicolumn{{{one.across}}}{{r@{{}}}}{{continued on the next page}}\\\\",
            "\\endfoot",
            "\\bottomrule",
            "\\endlastfoot",
            *one.rows,
            "\\end{longtable}",
        )
    )


def _paragraph(width: float, side: str) -> str:
    """The column specification of tabular for a column whose texts are folded."""
    ragged = {"l": "raggedright", "r": "raggedleft", "c": "centering"}[side]
    return f">{{\\{ragged}\\arraybackslash}}p{{{width / EM:.2f}em}}"


def _line(parts: Iterable[str]) -> str:
    return f"{' & '.join(parts)} \\\\"
