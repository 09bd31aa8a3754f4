"""A sheet as GitHub Markdown."""

import re
from collections.abc import Iterator, Sequence

from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.verdicts import Answer
from kdx.report.sheet import Score, Sheet
from kdx.report.sheets.claims import of_papers
from kdx.report.sheets.listings import sheets_of
from kdx.report.tables import Table
from kdx.report.wording import LEVELS
from kdx.sanitize import sanitize

# Characters that open a construct inside a line: code, emphasis, links, HTML, entities, math, cells, and addresses that
# GitHub would turn into links.
_MARKUP = re.compile(r"[\\`*_\[\]<>|~$&@]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def to_markdown(table: Table, *, statistics: bool = False, notes: str = "short", made_by: str = "") -> str:
    """The table, followed by its listings.

    Args:
        statistics: see `kdx.report.sheets.listings.sheets_of`; so is `notes`.
        made_by: the command that makes it (`kdx.report.made_by`), for a comment before it; empty for none.
    """
    sheets = sheets_of(table, statistics=statistics, notes=notes)
    comment = f"<!-- {sanitize(made_by)} -->\n" if made_by and "-->" not in made_by else ""
    return comment + "\n".join(map(sheet_to_markdown, sheets))


def write_tables(tables: Sequence[Table], made_by: MadeBy) -> Iterator[str]:
    """Write tables; see `kdx.report.writers`."""
    yield "\n".join(
        to_markdown(
            table, made_by=made_by.command(table.layout.name), statistics=made_by.statistics, notes=made_by.notes
        )
        for table in tables
    )


def write_claims(papers: Sequence[tuple[Paper, Sequence[Answer]]], options: str) -> Iterator[str]:
    """Write verdicts on claims; see `kdx.report.writers`."""
    for heading, sheets in of_papers(papers, options):
        yield "\n".join((f"# {plain(heading)}\n", *map(sheet_to_markdown, sheets)))


def sheet_to_markdown(sheet: Sheet) -> str:
    """The sheet with its title above and its notes below; names come out as plain text."""
    headers = [LEVELS.join(map(plain, sheet.levels(at))) for at in range(len(sheet.headers))]
    rules = [":---" if sheet.is_of_words(at) else "---:" for at in range(len(headers))]
    rows = [[_score(cell) if isinstance(cell, Score) else plain(cell) for cell in row] for row in sheet.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in (headers, rules, *rows))
    title = f"**{plain(sheet.title)}**" + (f": {plain(sheet.caption)}" if sheet.caption else "")
    notes = ("\n\n" if sheet.of_scores else " ").join(map(plain, sheet.notes))
    return "\n\n".join((title, *([body] if rows or sheet.of_scores else []), notes)) + "\n"


def _score(place: Score) -> str:
    spread = f" ± {place.sd}" if place.sd else ""
    score = place.score if place.marks_mean else _marked(place.score, place)
    if not place.mean:
        # The score is the mean itself.
        score = " ".join(filter(None, (f"{score}{spread}", place.n)))
    else:
        mean = _marked(place.mean, place) if place.marks_mean else place.mean
        n = f", n = {place.n.strip('()')}" if place.n else ""
        score = f"{score} ({mean}{spread}{n})"
    return ", ".join(filter(None, (score, place.note)))


def _marked(number: str, place: Score) -> str:
    return f"**{number}**" if place.best else f"{number}{place.sign}"


def plain(text: str) -> str:
    """Escapes text so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\g<0>", sanitize(text))
