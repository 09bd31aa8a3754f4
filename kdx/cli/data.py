"""`kdx data`: prepares real text, lists the corpora, and shows one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import rich.progress
import typer
from rich.console import Console
from rich.theme import Theme

from kdx.cli import completion
from kdx.cli.console import out, out_json, out_lines, say, table
from kdx.cli.group import group_of
from kdx.cli.options import Json
from kdx.data import prepare as preparing
from kdx.data.examples import GeneratedExamples
from kdx.data.prepared import corpus_folder, how_to_prepare, prepared_corpora
from kdx.data.text import GeneratedText, KnownText, Progress, no_progress
from kdx.errors import KdxError, did_you_mean, shortened
from kdx.report.writers.styles import BARS
from kdx.sanitize import sanitize_lines
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.data_kinds import text_kind
from kdx.vocabulary import Split

LONGEST_PATH = 1_000
"""Largest number of characters of a path that is shown."""


@dataclass(frozen=True)
class Corpus:
    """A corpus that a grid can name."""

    name: str
    suffixes: tuple[str, ...]
    tokenised: bool
    train_lines: int
    state: str = "generated"
    licence: str | None = "made by kdx"
    where: str | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    address: str | None = None
    by_hand: str | None = None
    """How to get it if it cannot be fetched."""
    source: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def direction(self) -> str:
        """What its text is, or from which language it is translated to which."""
        if not self.suffixes:
            return "examples"
        kind = text_kind(self.suffixes)
        return kind.word.removesuffix(" text") if kind.suffixes else " → ".join(self.suffixes)


def prepare(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.corpora,
            help="A known corpus, checked by its hashes: iwslt14, multi30k, tatoeba-deu-eng, wikitext2,"
            " wikitext103, eltec-eng, wmt14-en-de, wmt14-en-fr; or a new name for your own text.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip, here or at an http(s) address; default: where a"
            " known corpus was published.",
        ),
    ] = None,
    tokenised: Annotated[
        bool,
        typer.Option(
            "--tokenised",
            help="For translation: punctuation is separated by spaces, and BLEU compares words as they are.",
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
        say(f"reading {source[:LONGEST_PATH]} …" if source else f"fetching {address} …")
    with _progress() as progress:
        about = preparing.prepare(name, source or None, tokenised=tokenised, progress=progress)
    out(str(corpus_folder(about.name)))
    for note in about.notes:
        say(f"note: {note}")
    lines = ", ".join(f"{file} {info.lines:,}" for file, info in about.files.items())
    say(f"{about.name} is prepared, lines: {lines}; next, in a grid: data: {{corpus: {about.name}}}")


def list_(json: Json = False) -> None:
    """List the corpora: built in, prepared, and known but yet to be prepared.

    Example: kdx data list --json
    """
    corpora = _corpora()
    if json:
        out_json(list(corpora.values()))
        return
    rows = [
        (each.name, each.state, each.direction, f"{each.train_lines:,}", each.licence or "not known", each.where)
        for each in corpora.values()
    ]
    out_lines(
        table(("corpus", "state", "text", "training lines", "licence", "where"), rows, spare=("where", "licence"))
    )
    if missing := [each.name for each in corpora.values() if each.state == "not prepared"]:
        say(f"next: {how_to_prepare(missing[0])}")


def info(
    name: Annotated[str, typer.Argument(autocompletion=completion.corpora, help="A corpus of kdx data list.")],
    json: Json = False,
) -> None:
    """Show one corpus: its place or how to get it, its licence, counts, hashes and notes.

    Example: kdx data info iwslt14
    """
    corpora = _corpora()
    if name not in corpora:
        hint = did_you_mean(name, corpora)
        raise KdxError(f"unknown corpus `{shortened(name)}`", allowed=sorted(corpora), hint=hint)
    corpus = corpora[name]
    if json:
        out_json(corpus)
        return
    facts = {
        "corpus": corpus.name,
        "state": corpus.state,
        "kind": corpus.direction + (", tokenised" if corpus.tokenised else ""),
        "licence": corpus.licence or "not known",
        "where": corpus.where,
        "prepared from": corpus.source,
        "address": corpus.address,
        "how to get it": corpus.by_hand,
    }
    out_lines(f"{fact:13}  {sanitize_lines(text)}" for fact, text in facts.items() if text)
    if corpus.files:
        rows = []
        for file, known in corpus.files.items():
            words = f"{known['words']:,}" if known.get("words") else ""
            lines = f"{'about ' if known.get('about') else ''}{known['lines']:,}"
            rows.append((file, lines, words, known.get("sha256")))
        out_lines(table(("file", "lines", "words", "checksum"), rows))
    out_lines(sanitize_lines(f"note: {note}") for note in corpus.notes)
    if corpus.state == "not prepared":
        say(f"next: {how_to_prepare(name)}")


def _corpora() -> dict[str, Corpus]:
    """Return every corpus by its name: those of kdx, then those that were prepared."""
    prepared = {about.name: about for about in prepared_corpora()}
    corpora = {}
    for name in {**BUILT_IN, **prepared}:
        known, about = BUILT_IN.get(name), prepared.get(name)
        if isinstance(known, GeneratedExamples):
            corpora[name] = Corpus(name, (), False, known.sizes[Split.TRAIN])
        elif isinstance(known, GeneratedText):
            corpora[name] = Corpus(name, known.suffixes, True, known.train_lines)
        else:
            text = about or known
            assert text is not None
            corpora[name] = Corpus(
                name=name,
                suffixes=text.suffixes,
                tokenised=text.tokenised,
                train_lines=text.files[f"train.{text.suffixes[0]}"].lines,
                state="prepared" if about else "not prepared",
                licence=text.licence,
                where=str(corpus_folder(name)) if about else None,
                files={
                    file: {fact: value for fact, value in asdict(facts).items() if value is not None}
                    for file, facts in text.files.items()
                },
                address=known.address if isinstance(known, KnownText) else None,
                by_hand=known.by_hand if isinstance(known, KnownText) else None,
                source=about.source if about else None,
                notes=tuple(about.notes) if about else (),
            )
    return corpora


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show bars for long steps, on a terminal only."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(show_speed=True),
        rich.progress.TimeRemainingColumn(),
        console=Console(stderr=True, theme=Theme(BARS)),
        transient=True,
    )
    tasks: dict[str, rich.progress.TaskID] = {}

    def update(step: str, done: int, total: int | None) -> None:
        if step not in tasks:
            tasks[step] = bars.add_task(sanitize_lines(step))
        bars.update(tasks[step], completed=done, total=total)

    with bars:
        yield update


app = group_of(
    "Prepare real text, and list or show corpora.",
    "Example: kdx data prepare multi30k. Data lies in KDX_DATA, by default ~/.local/share/kdx.",
    prepare=prepare,
    list_=list_,
    info=info,
)
