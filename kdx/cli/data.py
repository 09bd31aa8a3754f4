"""`kdx data`: prepare real text, and list the corpora that there are."""

from typing import Annotated, Any

import typer

from kdx.cli.console import inert, out, out_json, say
from kdx.cli.group import Group
from kdx.cli.options import Json

app = typer.Typer(
    cls=Group,
    help="Prepare real text, and list the corpora that a grid can name.",
    epilog="Data lies in KDX_DATA, by default ~/.local/share/kdx.",
    no_args_is_help=True,
)


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="What grids will call it; multi30k and wikitext2 are known and checked.")],
    source: Annotated[
        str,
        typer.Option(
            "--from", envvar="KDX_FROM", metavar="PATH", help="A folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip."
        ),
    ],
) -> None:
    """Check text and copy it into the data home, so that grids can name it.

    Parallel text is train.X and train.Y, and the same for valid and test (train.de, train.en, …); X is translated to
    Y in alphabetical order unless the grid says otherwise. Plain text is train.txt, valid.txt and test.txt.

    Example: kdx data prepare multi30k --from multi30k.tar.xz
    """
    from pathlib import Path

    from kdx.data import prepare as preparing

    say(f"reading {source} …")
    about = preparing.prepare(name, Path(source).expanduser())
    out(str(preparing.corpus_folder(name)))
    lines = ", ".join(f"{file} {info.lines:,}" for file, info in about.files.items())
    say(f"{name} is prepared, lines: {lines}; next, in a grid: data: {{corpus: {name}}}")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the corpora: built in, prepared, and known but yet to be prepared.

    Example: kdx data list --json
    """
    rows = _rows()
    if json:
        out_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("corpus", "state", "text", "training lines", "licence", "where", box=None)
    for row in rows:
        shown = (
            row["name"],
            row["state"],
            " → ".join(row["suffixes"]) if len(row["suffixes"]) > 1 else "plain" if row["suffixes"] else "examples",
            f"{row['train_lines']:,}",
            row["licence"] or "not known",
            row["where"] or "",
        )
        table.add_row(*(Text(inert(cell), overflow="fold") for cell in shown))
    out(table)
    missing = [row["name"] for row in rows if row["state"] == "not prepared"]
    if missing:
        say(f"next: kdx data prepare {missing[0]} --from PATH")


def _rows() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from kdx.axes import Split
    from kdx.data import BUILT_IN
    from kdx.data.examples import GeneratedExamples
    from kdx.data.prepare import PreparedInfo, corpus_folder, prepared_corpora
    from kdx.data.text import GeneratedText

    rows = []
    for name, text in {**BUILT_IN, **{about.name: about for about in prepared_corpora()}}.items():
        generated = {"state": "generated", "licence": "made by kdx", "where": None}
        if isinstance(text, GeneratedExamples):
            rows.append({"name": name, "suffixes": (), "train_lines": text.sizes[Split.TRAIN], **generated})
            continue
        row: dict[str, Any] = {"name": name, "suffixes": text.suffixes}
        if isinstance(text, GeneratedText):
            row |= {"train_lines": text.train_lines, **generated}
        else:
            prepared = isinstance(text, PreparedInfo)
            row |= {
                "state": "prepared" if prepared else "not prepared",
                "train_lines": text.files[f"train.{text.suffixes[0]}"].lines,
                "licence": text.licence,
                "where": str(corpus_folder(name)) if prepared else None,
                "files": {file: asdict(info) for file, info in text.files.items()},
            }
        rows.append(row)
    return rows
