"""`kdx data`: prepares real text, lists the corpora, and shows one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import rich.progress
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.group import CommandGroup
from kdx.cli.options import Json
from kdx.data import prepare as preparing
from kdx.data.examples import GeneratedExamples
from kdx.data.prepared import corpus_folder, how_to_prepare, prepared_corpora
from kdx.data.text import GeneratedText, KnownText, Progress, no_progress
from kdx.errors import KdxError, did_you_mean, shortened
from kdx.sanitize import sanitize_lines
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.data_kinds import text_kind
from kdx.vocabulary import Split

LONGEST_PATH = 1_000
"""Largest number of characters of a path that is shown."""

app = typer.Typer(
    cls=CommandGroup,
    help="Prepare real text, and list or show corpora.",
    epilog="Data lies in KDX_DATA, by default ~/.local/share/kdx.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def prepare(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.corpora,
            help="Its name in grids; iwslt14, multi30k, wikitext2, wikitext103, wmt14-en-de and"
            " wmt14-en-fr are known and checked.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip, here or at an http(s) address;"
            " if not said, a known corpus is fetched from where it was published.",
        ),
    ] = None,
    tokenised: Annotated[
        bool,
        typer.Option(
            "--tokenised",
            help="For translation: your text has its punctuation apart, so BLEU takes its words as they are."
            " Other tasks read the words between spaces either way.",
        ),
    ] = False,
) -> None:
    """Check text and copy it into the data home, so that grids can name it.

    Parallel text is train.X and train.Y, and the same for valid and test (train.de, train.en, …); X is translated to
    Y in alphabetical order unless the grid says otherwise. Plain text is train.txt, valid.txt and test.txt, or has
    these words in its names, as ptb.train.txt has. Labelled text is train.txt, train.labels and so on.

    Example: kdx data prepare multi30k --from multi30k.tar.xz
    """
    known = BUILT_IN.get(name)
    address = known.address if isinstance(known, KnownText) else None
    if source or address:
        say(f"reading {str(source)[:LONGEST_PATH]} …" if source else f"fetching {address} …")
    with _progress() as progress:
        about = preparing.prepare(name, source or None, tokenised=tokenised, progress=progress)
    out(str(corpus_folder(about.name)))
    for note in about.notes:
        say(f"note: {note}")
    lines = ", ".join(f"{file} {info.lines:,}" for file, info in about.files.items())
    say(f"{about.name} is prepared, lines: {lines}; next, in a grid: data: {{corpus: {about.name}}}")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the corpora: built in, prepared, and known but yet to be prepared.

    Example: kdx data list --json
    """
    rows = _rows()
    if json:
        out_json(rows)
        return

    table = Table("corpus", "state", "text", "training lines", "licence", "where", box=None)
    for row in rows:
        shown = (
            row["name"],
            row["state"],
            _direction(row["suffixes"]),
            f"{row['train_lines']:,}",
            row["licence"] or "not known",
            row["where"] or "",
        )
        table.add_row(*(Text(sanitize_lines(cell), overflow="fold") for cell in shown))
    out(table)
    missing = [row["name"] for row in rows if row["state"] == "not prepared"]
    if missing:
        say(f"next: {how_to_prepare(missing[0])}")


@app.command()
def info(
    name: Annotated[
        str,
        typer.Argument(autocompletion=completion.corpora, help="A corpus of `kdx data list`."),
    ],
    json: Json = False,
) -> None:
    """Show one corpus: its place or how to get it, its licence, counts, hashes and notes.

    Example: kdx data info iwslt14
    """
    rows = {row["name"]: row for row in _rows()}
    if name not in rows:
        raise KdxError(f"unknown corpus `{shortened(name)}`", allowed=sorted(rows), hint=did_you_mean(name, rows))
    row = rows[name]
    if json:
        out_json(row)
        return
    _show(row)
    if row["state"] == "not prepared":
        say(f"next: {how_to_prepare(name)}")


def _show(row: dict[str, Any]) -> None:
    facts = {
        "corpus": row["name"],
        "state": row["state"],
        "kind": _direction(row["suffixes"]) + (", tokenised" if row["tokenised"] else ""),
        "licence": row["licence"] or "not known",
        "where": row["where"],
        "prepared from": row.get("source"),
        "address": row.get("address"),
        "how to get it": row.get("by_hand"),
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for fact, text in facts.items():
        if text:
            table.add_row(fact, Text(sanitize_lines(text), overflow="fold"))
    out(table)
    if "files" in row:
        files = Table("file", "lines", "words", "checksum", box=None, pad_edge=False)
        for file, known in row["files"].items():
            words = f"{known['words']:,}" if known.get("words") else ""
            lines = f"{'about ' if known.get('about') else ''}{known['lines']:,}"
            files.add_row(file, lines, words, known.get("sha256") or "")
        out(files)
    for note in row.get("notes", ()):
        out(sanitize_lines(f"note: {note}"))


def _rows() -> list[dict[str, Any]]:
    prepared = {about.name: about for about in prepared_corpora()}
    rows = []
    for name in {**BUILT_IN, **prepared}:
        known, about = BUILT_IN.get(name), prepared.get(name)
        generated = {"state": "generated", "licence": "made by kdx", "where": None}
        if isinstance(known, GeneratedExamples):
            row: dict[str, Any] = {
                "suffixes": (),
                "tokenised": False,
                "train_lines": known.sizes[Split.TRAIN],
                **generated,
            }
        elif isinstance(known, GeneratedText):
            row = {"suffixes": known.suffixes, "tokenised": True, "train_lines": known.train_lines, **generated}
        else:
            text = about or known
            assert text is not None
            files = {
                file: {fact: value for fact, value in asdict(info).items() if value is not None}
                for file, info in text.files.items()
            }
            row = {
                "state": "prepared" if about else "not prepared",
                "suffixes": text.suffixes,
                "tokenised": text.tokenised,
                "train_lines": files[f"train.{text.suffixes[0]}"]["lines"],
                "licence": text.licence,
                "where": str(corpus_folder(name)) if about else None,
                "files": files,
            }
        if isinstance(known, KnownText):
            row |= {"address": known.address, "by_hand": known.by_hand}
        if about:
            row |= {"source": about.source, "notes": about.notes}
        rows.append({"name": name, **row})
    return rows


def _direction(suffixes: tuple[str, ...]) -> str:
    if not suffixes:
        return "examples"
    kind = text_kind(suffixes)
    return kind.word.removesuffix(" text") if kind.suffixes else " → ".join(suffixes)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Shows bars for long steps, on a terminal only."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(show_speed=True),
        rich.progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, rich.progress.TaskID] = {}

    def update(step: str, done: int, total: int | None) -> None:
        if step not in tasks:
            tasks[step] = bars.add_task(sanitize_lines(step))
        bars.update(tasks[step], completed=done, total=total)

    with bars:
        yield update
