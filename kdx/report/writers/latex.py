"""A sheet as LaTeX, for packages that every distribution has.

A short caption stands above the table, the notes below. A table that is a little wider than the text is scaled down to
it, a wider one is turned on its side; one that is too wide for that too continues below with its row names repeated. A
table that is higher than its page is a longtable instead of a float: it breaks across pages with its head repeated, and
two-column text does not allow it.
Widths are estimated as numbers of characters, for the text of the article class.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.sheet import DIGIT, Score, Sheet, lined_up, spans
from kdx.report.sheets.claims import of_papers
from kdx.report.sheets.listings import sheets_of
from kdx.report.tables import Table
from kdx.report.writers.tex import breakable_tex, raised, spelled, tex
from kdx.report.writers.text import fit
from kdx.report.writers.widths import GAP
from kdx.sanitize import sanitize

PREAMBLE = "% \\usepackage{array,booktabs,graphicx,longtable,lscape,rotating}\n"
"""The packages that a document needs, for its preamble."""


_PAGES = ("table", 72, 43), ("sidewaystable", 115, 27)
"""An upright and a turned page of the article class: its float, the characters in a line of text, and its lines."""
_NARROW = "\\setlength{\\tabcolsep}{4pt}"
_SPACES = f"\\setlength{{\\abovecaptionskip}}{{0pt}}\\setlength{{\\belowcaptionskip}}{{6pt}}{_NARROW}"
_SCALED = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
_LETTER = re.compile(r"\b[np]\b")
"""The symbol of a number of seeds, or of a p-value, in the head of a column."""
_SYMBOL = re.compile(r"(?<![\w/$-])(?:k/n|k(?= of n\b)|(?<=k of )n\b|[np](?= = | \\textless|:))")
"""The same in a text."""
_Column = tuple[str, int, Sequence[Sequence[str]]]
"""The specification of a column, how many it takes in the tabular, and the parts of each row; scores take further ones
for the texts beside them."""
_CHARACTER = 0.5
"""Width of a digit, in em."""
_RULES = 3
"""Lines that the head and the rules of a table take."""
_SMALL = 0.8
"""Size of the notes' type, relative to that of the text."""


def to_latex(table: Table, *, statistics: bool = False, notes: str = "short", made_by: str = "") -> str:
    """The table, followed by its listings as tables of their own.

    Args:
        statistics: see `kdx.report.sheets.listings.sheets_of`; so is `notes`.
        made_by: the command that makes it (`kdx.report.made_by`), for a comment before it; empty for none.
    """
    sheets = sheets_of(table, statistics=statistics, notes=notes)
    comment = f"% {sanitize(made_by)}\n" if made_by else ""
    return comment + "\n".join(map(sheet_to_latex, sheets))


def write_tables(tables: Sequence[Table], made_by: MadeBy) -> Iterator[str]:
    """Write tables; see `kdx.report.writers`, after the comment for the preamble."""
    yield PREAMBLE + "\n".join(
        to_latex(table, made_by=made_by.command(table.layout.name), statistics=made_by.statistics, notes=made_by.notes)
        for table in tables
    )


def write_claims(papers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> Iterator[str]:
    """Write verdicts on claims; see `kdx.report.writers`, after the comment for the preamble."""
    yield PREAMBLE
    for heading, sheets in of_papers(papers, options):
        # LaTeX holds few floats before a page that takes them.
        yield "\n".join((f"\\clearpage\n\\section*{{{tex(heading)}}}", *map(sheet_to_latex, sheets)))


def sheet_to_latex(sheet: Sheet) -> str:
    """A float if it fits on one page, else a table that breaks across pages; its title above, its notes below."""
    title = _title(sheet)
    below = ["{\\footnotesize\\sloppy\\parindent=0pt", *(f"{_note(note)}\\par" for note in sheet.notes), "}"]
    if not sheet.rows and not sheet.of_scores:
        return "\n".join(("\\par\\medskip\\noindent", f"{title}\\par", *below, "\\medskip\n"))
    above = [f"\\caption[{tex(sheet.caption or sheet.title)}]{{{title}}}", f"\\label{{{label(*sheet.key)}}}"]
    rows = tuple(tuple(_bare(cell) if isinstance(cell, Score) else cell for cell in row) for row in sheet.rows)
    bare = replace(sheet, rows=rows)
    for kind, characters, height in _PAGES:
        # Beyond these widths a float is scaled down too far, and a longtable, whose type is smaller, is too wide.
        tabulars = [_tabular(sheet, piece) for piece in fit(bare, characters * 3 // 2)]
        lines = _lines(title, characters) + _SMALL * sum(_lines(note, int(characters / _SMALL)) for note in sheet.notes)
        is_float = sum(tabular.height + _RULES for tabular in tabulars) + lines <= height
        if not is_float:
            tabulars = [_tabular(sheet, piece) for piece in fit(bare, characters * 9 // 8)]
        turned = kind != "table"
        if len(tabulars) == 1:
            break
    if is_float:
        start = f"\\begin{{{kind}}}{'' if turned else '[!ht]'}\n{_SPACES}"
        body = "\n\\par\\medskip\n".join(map(_float, tabulars))
        return "\n".join((start, *above, "{\\centering", body, "\\par\\smallskip}", *below, f"\\end{{{kind}}}\n"))
    # Each longtable counts as a table of its own.
    body = "\n\\addtocounter{table}{-1}\n".join((_longtable(tabulars[0], above), *map(_longtable, tabulars[1:])))
    return "\n".join(
        (
            "\\begin{landscape}" if turned else "\\begingroup",
            f"\\footnotesize{_NARROW}\\setlength{{\\LTpost}}{{\\smallskipamount}}",
            body,
            *below,
            "\\end{landscape}\n" if turned else "\\endgroup\\bigskip\n",
        )
    )


def _title(sheet: Sheet) -> str:
    """What stands above a table: its caption, or what it lists of which table."""
    title, name = _note(sheet.caption or sheet.title), f"{_note(sheet.key[0])}: "
    if len(sheet.key) > 1 and title.startswith(name):
        rest = title.removeprefix(name)
        title = f"{rest[:1].upper()}{rest[1:]} (Table~\\ref{{{label(sheet.key[0])}}})"
    return title if title.endswith((".", "?", "!")) else f"{title}."


def _note(text: str) -> str:
    """A text of a report, with the symbols of statistics as such."""
    return _SYMBOL.sub(r"$\g<0>$", breakable_tex(text))


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


def _tabular(sheet: Sheet, piece: dict[int, int]) -> _Tabular:
    names = sheet.names
    columns = []
    for at, width in piece.items():
        if sheet.of_scores and at >= names:
            columns.append(_scores(sheet.scores(at)))
        else:
            columns.append(_words(sheet, at, width))
    across = [across for _, across, _ in columns]
    rows = []
    height = 0.0
    for index, (row, row_names) in enumerate(zip(sheet.rows, sheet.row_names(), strict=True)):
        if sheet.of_scores and index and names > 1 and row_names[0]:
            rows.append("\\addlinespace")
            height += 0.5
        parts = [
            [""] if at < names and not row_names[at] else places[index]
            for at, (_, _, places) in zip(piece, columns, strict=True)
        ]
        rows.append(_line(part for place in parts for part in place))
        shown = [row[at] for at in piece]
        notes = [tex(cell.note) if isinstance(cell, Score) and cell.aligned else "" for cell in shown]
        if any(notes):
            below = (
                f"\\multicolumn{{{count}}}{{l}}{{{note}}}" if note else " & " * (count - 1)
                for note, count in zip(notes, across, strict=True)
            )
            rows.append(_line(below))
            height += 1
        height += max(
            _lines(text, width)
            for at, width in piece.items()
            for text in [row_names[at] if at < names else row[at]]
            if isinstance(text, str)
        )
    return _Tabular("".join(spec for spec, *_ in columns), sum(across), [*_head(sheet, piece, across)], rows, height)


def _head(sheet: Sheet, piece: dict[int, int], of_columns: Sequence[int]) -> Iterator[str]:
    """The head of a table, one line for each level with a rule below all but the innermost.

    A header of scores spans what stands beside them, and neighbours that share it.

    Args:
        of_columns: number of columns that each takes in the tabular.
    """
    names = sheet.names
    right, widths = [*piece][names:], [*piece.values()]
    if not sheet.of_scores or not right:
        heads = [_folded(sheet.headers[at], width) for at, width in piece.items()]
        yield _line((*heads[:names], *(_LETTER.sub(r"$\g<0>$", head) for head in heads[names:])))
        return
    headers = [sheet.levels(at) for at in right]
    levels = max(map(len, headers))
    for level in range(levels):
        innermost = level == levels - 1
        parts = [_folded(sheet.headers[at], width) if innermost else "" for at, width in enumerate(widths[:names])]
        rules, first, at = [], names, names + 1
        for word, count in spans(headers, level):
            across = sum(of_columns[first : first + count])
            room = sum(widths[first : first + count]) + GAP * (count - 1)
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
    left = sheet.is_of_words(at)
    folds = any(len(sanitize(text)) > width for text in (sheet.headers[at], *texts))
    spec = _paragraph(width, "raggedright" if left else "raggedleft") if folds else "l" if left else "r"
    return spec, 1, [[breakable_tex(text) if folds else tex(text)] for text in texts]


def _scores(places: Sequence[Score]) -> _Column:
    """A column of scores, its numbers aligned."""
    places = [*map(_bare, places)]
    more = [text.replace("-", "−") for *_, text in lined_up(places, blank=DIGIT)]
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
    # A score stands nearer to its own mean than to the cell on its left.
    spec = ">{\\hspace{.5em}}" + "r@{\\enspace}" * (1 + has_means) + "l" * has_more if across > 1 else "r"
    return spec, across, written


def _bare(place: Score) -> Score:
    """A place without its note, which stands below it where it has a number."""
    return replace(place, note="") if place.aligned else place


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
