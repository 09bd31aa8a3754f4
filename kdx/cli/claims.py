"""`kdx claims`: decides a paper's claims from the runs."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.context import Answering
from kdx.cli.named_runs import load_named
from kdx.cli.options import TableFormat, sweep_option
from kdx.cli.wording import count_of
from kdx.errors import KdxError
from kdx.report.papers.paper_file import load_paper, shipped
from kdx.report.papers.verdicts import SettingVerdict, Verdict, answers
from kdx.report.writers import Format, writer
from kdx.report.writers.json import claim_to_json
from kdx.store.reading import load_sweeps


def claims(
    context: Answering,
    format: TableFormat,
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER|FILE", help="A paper, such as tsai2019, or a file; default: all that come with kdx."
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None, sweep_option("Only the runs of this sweep, or grid file; may be repeated.")
    ] = None,
) -> None:
    """Test a paper's claims against the recorded runs.

    Example: kdx claims tsai2019 --sweep tsai2019/table1-mini
    """
    if format is Format.CSV and not context.json:
        raise KdxError("claims are not written as CSV", hint="--json has all their numbers")
    with context.read() as database:
        named = {record.id: record for name in sweep or () for record in [load_named(database, name, context)]}
        sweeps = tuple(named.values()) if named else load_sweeps(database)
    papers = [load_paper(name, sweeps) for name in ([paper] if paper else shipped())]
    decided = [(each, answers(each.claims, sweeps)) for each in papers]
    verdicts = [setting for _, of_paper in decided for answer in of_paper for setting in answer.settings]
    if context.json:
        listed = [
            {
                "paper": each.name,
                "title": each.title,
                "source": each.source,
                "claims": [claim_to_json(answer) for answer in of_paper],
            }
            for each, of_paper in decided
        ]
        out_json({"sweeps": [record.name for record in sweeps], "papers": listed})
    elif format is Format.HTML:
        # Jinja2 and the libraries of the page, which no other format needs.
        from kdx.report.writers.html.page import claims_to_html

        out(claims_to_html(decided, _counts(verdicts), context.options))
    else:
        for part in writer(format).write_claims(decided, context.options):
            out(part)
    say(_counts(verdicts))


def _counts(settings: Sequence[SettingVerdict]) -> str:
    counts = {verdict: sum(setting.verdict is verdict for setting in settings) for verdict in Verdict}
    plural = {Verdict.HOLDS: "hold", Verdict.DOES_NOT_HOLD: "do not hold"}
    text = ", ".join(
        f"{count} {plural.get(verdict, verdict) if count != 1 else verdict}"
        for verdict, count in counts.items()
        if count or verdict is not Verdict.NOT_TESTED
    )
    return f"{count_of(len(settings), 'verdict')}, one per claim and setting: {text}"
