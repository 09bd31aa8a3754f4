"""`kdx claims`: decides a paper's claims from the runs."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Files, Format, Json, TableFormat, in_database
from kdx.cli.sweep_argument import load_named, plans_in_files
from kdx.report.papers.decisions import Verdict
from kdx.report.papers.paper_file import load_paper, shipped
from kdx.report.papers.verdicts import Answer, SettingVerdict, answers
from kdx.report.sheets.claims import claim, not_tested
from kdx.report.writers.csv import claims_to_csv
from kdx.report.writers.json import claim_to_json
from kdx.report.writers.latex import PREAMBLE, sheet_to_latex
from kdx.report.writers.markdown import plain, sheet_to_markdown
from kdx.report.writers.tex import tex
from kdx.report.writers.text import TextSheet
from kdx.sanitize import sanitize
from kdx.store.database import open_database
from kdx.store.reading import load_sweeps


def claims(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER|FILE]",
            help="A paper, such as tsai2019, or a file; every paper inside kdx if not said.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            autocompletion=completion.sweeps_and_grids,
            help="Only runs of this sweep, by its name or its grid file, any number of times; of all if not said.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    format: TableFormat = Format.TEXT,
    json: Json = False,
) -> None:
    """Test a paper's claims against the recorded runs.

    Example: kdx claims tsai2019 --sweep tsai2019/table1-mini
    """
    named = sweep or []
    plans = plans_in_files(named, "claims")
    with open_database(db, write=False) as database, database.read():
        of = [load_named(database, name, plan, db) for name, plan in zip(named, plans, strict=True)]
        sweeps = tuple({one.id: one for one in of}.values()) if named else load_sweeps(database)
    papers = [load_paper(name, sweeps) for name in ([paper] if paper else shipped())]
    found = [(one, answers(one.claims, sweeps)) for one in papers]
    verdicts = [setting for _, those in found for answer in those for setting in answer.settings]
    if json:
        out_json(
            {
                "sweeps": [one.name for one in sweeps],
                "papers": [
                    {
                        "paper": one.name,
                        "title": one.title,
                        "source": one.source,
                        "claims": [claim_to_json(answer) for answer in those],
                    }
                    for one, those in found
                ],
            }
        )
    elif format is Format.CSV:
        out(claims_to_csv(found))
    elif format is Format.HTML:
        # Jinja2 and the libraries of the page, which no other format needs.
        from kdx.report.writers.html.page import claims_to_html

        out(claims_to_html(found, _counts(verdicts)))
    else:
        if format is Format.LATEX:
            out(PREAMBLE)
        for one, those in found:
            _write(f"{one.title or one.name}. {one.source}".rstrip(), those, format, in_database(db))
    say(_counts(verdicts))


def _write(title: str, answers: Sequence[Answer], format: Format, options: str) -> None:
    listings = [listing for one in answers for listing in claim(one)] + [*not_tested(answers, options)]
    if format is Format.MARKDOWN:
        out("\n".join((f"# {plain(title)}\n", *map(sheet_to_markdown, listings))))
        return
    if format is Format.LATEX:
        out("\n".join((f"\\section*{{{tex(title)}}}", *map(sheet_to_latex, listings))))
        return

    out(f"{sanitize(title)}\n")
    for one in listings:
        out(TextSheet(one))
        out("")


def _counts(settings: Sequence[SettingVerdict]) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in settings) for verdict in Verdict}
    plural = {Verdict.HOLDS: "hold", Verdict.DOES_NOT_HOLD: "do not hold"}
    text = ", ".join(
        f"{count} {plural.get(verdict, verdict) if count != 1 else verdict}"
        for verdict, count in counts.items()
        if count or verdict is not Verdict.NOT_TESTED
    )
    return f"{len(settings)} verdict{'' if len(settings) == 1 else 's'}, one a claim and setting: {text}"
