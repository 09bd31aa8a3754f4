"""A sheet as LaTeX, for packages that every distribution has.

A short caption stands above the table, the notes below. A table that is a little wider than the text is scaled down to
it, a wider one continues below with its row names repeated. A table that is then higher than a page is a longtable
instead of a float: it breaks across pages with its head repeated, and two-column text does not allow it.
Widths are estimated as numbers of characters, for the text of the article class.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.sheet import Score, Sheet, beside_scores, spans
from kdx.report.sheets.claims import of_papers
from kdx.report.sheets.listings import listings
from kdx.report.sheets.scores import scores
from kdx.report.table.table import Table
from kdx.report.writers.fit import are_words, fit
from kdx.report.writers.tex import DIGIT, breakable_tex, raised, spelled, tex
from kdx.report.writers.widths import GAP, Piece
from kdx.sanitize import sanitize

PREAMBLE = "% \\usepackage{array,booktabs,graphicx,longtable}\n"
"""The packages that a document needs, for its preamble."""

_TEXT, _FLOAT, _LONG = 72, 92, 74
"""Characters in a line of the text of the article class, in a row of a float before it is scaled down, and in one of a
longtable, whose type is smaller."""
_SCALED = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
_CHARACTER = 0.5
"""Width of a digit, in em."""
_PAGE, _RULES = 43, 3
"""Lines of a page, and lines that the head and the rules of a table take."""
_SMALL = 0.8
"""Size of the notes' type, relative to that of the text."""


def to_latex(table: Table, *, statistics: bool = False, full: bool = False, made_by: str = "") -> str:
    """The table, followed by its listings as tables of their own.

    Args:
        statistics: see `kdx.report.sheets.listings.listings`.
        full: see `kdx.report.sheets.notes.caption`.
        made_by: the command that makes it (`kdx.report.made_by`), for a comment before it; empty for none.
    """
    sheets = (scores(table, full=full), *listings(table, statistics=statistics, full=full))
    comment = f"% {sanitize(made_by)}\n" if made_by else ""
    return comment + "\n".join(map(sheet_to_latex, sheets))


def write_tables(tables: Sequence[Table], made_by: MadeBy) -> Iterator[str]:
    """Write tables; see `kdx.report.writers.formats`, after the comment for the preamble."""
    options = {"statistics": made_by.statistics, "full": made_by.notes == "full"}
    yield PREAMBLE + "\n".join(
        to_latex(table, made_by=made_by.command(table.layout.name), **options) for table in tables
    )


def write_claims(papers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> Iterator[str]:
    """Write verdicts on claims; see `kdx.report.writers.formats`, after the comment for the preamble."""
    yield PREAMBLE
    for heading, sheets in of_papers(papers, options):
        yield "\n".join((f"\\section*{{{tex(heading)}}}", *map(sheet_to_latex, sheets)))


def sheet_to_latex(sheet: Sheet) -> str:
    """A float if it fits on one page, else a table that breaks across pages; its title above, its notes below."""
    title = f"\\textbf{{{breakable_tex(sheet.title)}}}" if sheet.of_scores else breakable_tex(sheet.title)
    title += f": {breakable_tex(sheet.caption)}" if sheet.caption else ""
    title = title if title.endswith((".", "?", "!")) else f"{title}."
    below = ["{\\footnotesize\\sloppy\\parindent=0pt", *(f"{breakable_tex(note)}\\par" for note in sheet.notes), "}"]
    if not sheet.rows and not sheet.of_scores:
        return "\n".join(("\\par\\medskip\\noindent", f"{title}\\par", *below, "\\medskip\n"))
    tabulars = [_tabular(sheet, piece) for piece in fit(sheet, _FLOAT)]
    above = [f"\\caption[{tex(sheet.caption or sheet.title)}]{{{title}}}", f"\\label{{{label(*sheet.key)}}}"]
    lines = _lines(title, _TEXT) + _SMALL * sum(_lines(note, int(_TEXT / _SMALL)) for note in sheet.notes)
    if sum(tabular.height + _RULES for tabular in tabulars) + lines <= _PAGE:
        start = "\\begin{table}[!ht]\n\\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}"
        body = "\n\\par\\medskip\n".join(map(_float, tabulars))
        return "\n".join((start, *above, "{\\centering", body, "\\par\\smallskip}", *below, "\\end{table}\n"))
    tabulars = [_tabular(sheet, piece) for piece in fit(sheet, _LONG)]
    # Each longtable counts as a table of its own.
    body = "\n\\addtocounter{table}{-1}\n".join((_longtable(tabulars[0], above), *map(_longtable, tabulars[1:])))
    return "\n".join(
        ("\\begingroup\\footnotesize\\setlength{\\LTpost}{\\smallskipamount}", body, *below, "\\endgroup\\bigskip\n")
    )


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
    """Height of the rows in lines."""


@dataclass(frozen=True)
class _Column:
    """A column of a sheet as LaTeX; scores take further columns of the tabular for the texts beside them."""

    spec: str
    """The column specification of tabular."""
    across: int
    """Columns of the tabular."""
    places: Sequence[Sequence[str]]
    """The parts of each row."""


def _tabular(sheet: Sheet, piece: Piece) -> _Tabular:
    names = sheet.names
    columns = []
    for at, width in zip(piece.columns, piece.widths, strict=True):
        if sheet.of_scores and at >= names:
            columns.append(_scores(sheet.scores(at)))
        else:
            columns.append(_words(sheet, at, width))
    rows = []
    height = 0.0
    for index, (row, row_names) in enumerate(zip(sheet.rows, sheet.row_names(), strict=True)):
        if sheet.of_scores and index and names > 1 and row_names[0]:
            rows.append("\\addlinespace")
            height += 0.5
        parts = [
            [""] if at < names and not row_names[at] else column.places[index]
            for at, column in zip(piece.columns, columns, strict=True)
        ]
        rows.append(_line(part for place in parts for part in place))
        height += max(
            _lines(text, width)
            for at, width in zip(piece.columns, piece.widths, strict=True)
            for text in [row_names[at] if at < names else row[at]]
            if isinstance(text, str)
        )
    spec = "".join(column.spec for column in columns)
    return _Tabular(spec, sum(column.across for column in columns), [*_head(sheet, piece, columns)], rows, height)


def _head(sheet: Sheet, piece: Piece, columns: Sequence[_Column]) -> Iterator[str]:
    """The head of a table, one line for each level with a rule below all but the innermost.

    A header of scores spans what stands beside them, and neighbours that share it.
    """
    names = sheet.names
    right = piece.columns[names:]
    if not sheet.of_scores or not right:
        yield _line(_folded(sheet.headers[at], width) for at, width in zip(piece.columns, piece.widths, strict=True))
        return
    headers = [sheet.levels(at) for at in right]
    levels = max(map(len, headers))
    for level in range(levels):
        innermost = level == levels - 1
        parts = [
            _folded(sheet.headers[at], width) if innermost else "" for at, width in enumerate(piece.widths[:names])
        ]
        rules, first, at = [], names, names + 1
        for word, count in spans(headers, level):
            across = sum(column.across for column in columns[first : first + count])
            room = sum(piece.widths[first : first + count]) + GAP * (count - 1)
            folds = len(word) > room
            spec = _paragraph(room, "centering") if folds else "c"
            parts.append(f"\\multicolumn{{{across}}}{{{spec}}}{{{breakable_tex(word) if folds else tex(word)}}}")
            rules.append(f"\\cmidrule(lr){{{at}-{at + across - 1}}}")
            first, at = first + count, at + across
        yield _line(parts)
        if not innermost:
            yield "".join(rules)


def _words(sheet: Sheet, at: int, width: int) -> _Column:
    """A column of texts; those wider than the column are folded."""
    texts = sheet.texts(at)
    left = at < sheet.names or are_words(texts)
    folds = any(len(sanitize(text)) > width for text in (sheet.headers[at], *texts))
    spec = _paragraph(width, "raggedright" if left else "raggedleft") if folds else "l" if left else "r"
    return _Column(spec, 1, [[breakable_tex(text) if folds else tex(text)] for text in texts])


def _scores(places: Sequence[Score]) -> _Column:
    """A column of scores, its numbers aligned."""
    more = [text.replace("-", "−") for text in beside_scores(places, blank=DIGIT)]
    # Columns of the tabular: scores, means and what follows them, as far as any place has them.
    has_means = any(place.mean for place in places)
    has_more = any(place.aligned and beside for place, beside in zip(places, more, strict=True))
    across = 1 + has_means + has_more
    written = []
    for place, beside in zip(places, more, strict=True):
        score, mean = (spelled(text.replace("-", "−")) for text in (place.score, place.mean))
        if not place.aligned and place.score:
            text = ", ".join(filter(None, (score, spelled(beside))))
            written.append([f"\\multicolumn{{{across}}}{{l}}{{{text}}}"] if across > 1 else [text])
            continue
        score, mean = (score, _marked(mean, place)) if place.marks_mean else (_marked(score, place), mean)
        written.append([score, *[mean] * has_means, *[spelled(beside)] * has_more])
    spec = "r@{\\quad}" + "r@{\\enspace}" * has_means + "l" * has_more if across > 1 else "r"
    return _Column(spec, across, written)


def _marked(number: str, place: Score) -> str:
    if place.best:
        return f"\\textbf{{{number}}}"
    return f"{number}\\rlap{{{raised(place.sign)}}}" if place.sign else number


def _float(tabular: _Tabular) -> str:
    lines = ["\\toprule", *tabular.head, "\\midrule", *tabular.rows, "\\bottomrule"]
    return "\n".join((_SCALED, f"\\begin{{tabular}}{{{tabular.columns}}}", *lines, "\\end{tabular}", "}"))


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


def _lines(text: str, width: int) -> int:
    """Lines that a text takes when it is folded."""
    return max(1, -(-len(text) // width))


def _folded(text: str, width: int) -> str:
    return breakable_tex(text) if len(text) > width else tex(text)


def _paragraph(width: int, side: str) -> str:
    """The column specification of tabular for a column whose texts are folded."""
    return f">{{\\{side}\\arraybackslash}}p{{{width * _CHARACTER:.2f}em}}"


def _line(parts: Iterable[str]) -> str:
    return f"{' & '.join(parts)} \\\\"
