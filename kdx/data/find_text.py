"""Finds the text that a grid names, generated or prepared, in its direction.

Prepared text is identified by the hashes recorded at its preparation. They are compared when the text is read, which
happens only if its tokens are not in the cache.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from kdx.data.examples import GeneratedExamples
from kdx.data.prepared import PreparedInfo, corpus_folder, how_to_prepare, prepared_corpora, read_about
from kdx.data.storage import file_sha256
from kdx.data.text import GeneratedText, KnownText
from kdx.errors import KdxError, did_you_mean
from kdx.grid.sections import Data
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.data_kinds import DataKind, text_kind
from kdx.vocabulary import Split


@dataclass(frozen=True)
class FoundText:
    """A text that can be read."""

    suffixes: tuple[str, ...]
    """The source and the target language; only `txt` for plain text."""
    tokenised: bool
    """Whether punctuation is already separated."""
    identity: Any
    """A JSON value that differs between texts."""
    lines: Callable[[Split, str], Iterable[str]]
    """Reads the lines of a split in one language, without line feeds, one at a time; each call starts again. Raises
    KdxError if the file cannot be read or is not what was prepared."""
    title: str | None = None
    """Regular expression of the first line of a document; None if it has no documents."""


def find_kind(data: Data, home: Path | None, kind: DataKind) -> FoundText:
    """Return the text that `data` names, which must be of this kind.

    Raises:
        KdxError: the corpus does not exist, or is of another kind.
    """
    text = find_text(data, home)
    if (actual := text_kind(text.suffixes)) != kind:
        raise KdxError(
            f"corpus `{data.corpus}` is {_described(actual)}; this task needs {_described(kind)}",
            place="data.corpus",
            allowed=corpus_names(home, kind),
        )
    return text


def _described(kind: DataKind) -> str:
    return f"{kind.word}, for {' and '.join(task.word for task in TASKS.definitions() if task.data == kind)}"


def find_text(data: Data, home: Path | None = None) -> FoundText:
    """Return the text that `data` names.

    Args:
        home: the data home; None for the user's.

    Raises:
        KdxError: the corpus does not exist, or does not have this direction or seed.
    """
    built_in = BUILT_IN.get(data.corpus)
    if isinstance(built_in, GeneratedText):
        lines = data.train_lines or built_in.train_lines
        generated = cache(partial(built_in.generate, data.seed, lines))
        return FoundText(
            suffixes=_direction(data, built_in.suffixes),
            tokenised=True,
            identity=[data.corpus, data.seed, lines],
            lines=lambda split, suffix: generated()[split][suffix],
        )
    if isinstance(built_in, GeneratedExamples):
        usable = corpus_names(home)
        problem = f"`{data.corpus}` is no text: it is for task {built_in.task}"
        raise KdxError(problem, place="data.corpus", allowed=usable)
    folder = corpus_folder(data.corpus, home)
    about = read_about(folder)
    if about is None:
        raise _unknown(data.corpus, home)
    if data.seed:
        raise KdxError(f"`{data.corpus}` is not generated, so it has no seed", place="data.seed", allowed="0")
    available = about.files[f"{Split.TRAIN}.{about.suffixes[0]}"].lines
    if data.train_lines is not None and data.train_lines > available:
        raise KdxError(
            f"{data.train_lines} lines wanted, but the training text of `{about.name}` has {available}",
            place="data.train_lines",
            allowed=f"at most {available}",
        )
    return FoundText(
        suffixes=_direction(data, about.suffixes),
        tokenised=about.tokenised,
        identity={name: file.sha256 for name, file in about.files.items()},
        lines=partial(_lines, about, folder, data.train_lines),
        title=built_in.title if isinstance(built_in, KnownText) else None,
    )


def corpus_names(home: Path | None = None, kind: DataKind | None = None) -> list[str]:
    """Return the names of the generated and prepared texts that can be used now, of one kind or of any."""
    texts = {name: text.suffixes for name, text in BUILT_IN.items() if isinstance(text, GeneratedText)}
    texts |= {about.name: about.suffixes for about in prepared_corpora(home)}
    return sorted(name for name, suffixes in texts.items() if kind in (None, text_kind(suffixes)))


def _unknown(name: str, home: Path | None) -> KdxError:
    usable = corpus_names(home)
    texts = {*usable, *(known for known, text in BUILT_IN.items() if not isinstance(text, GeneratedExamples))}
    hint = how_to_prepare(name)
    if name in BUILT_IN:
        return KdxError(f"corpus `{name}` is not prepared yet", place="data.corpus", hint=hint)
    near = did_you_mean(name, texts)
    hint = f"{near} For your own text: {hint}" if near else hint
    return KdxError(f"unknown corpus `{name}`", place="data.corpus", allowed=sorted(texts), hint=hint)


def _direction(data: Data, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    if data.source is None or data.target is None:
        return suffixes
    kind = text_kind(suffixes)
    if kind.suffixes:
        raise KdxError(
            f"`{data.corpus}` is {kind.word}: it has no languages to translate between",
            place="data.source",
            hint="remove source and target",
        )
    wanted = (data.source, data.target)
    if sorted(wanted) != sorted(suffixes):
        first, second = suffixes
        raise KdxError(
            f"`{data.corpus}` has no direction {data.source} → {data.target}",
            place="data.source",
            allowed=f"{first} → {second}, {second} → {first}",
        )
    return wanted


def _lines(about: PreparedInfo, folder: Path, train_lines: int | None, split: Split, suffix: str) -> Iterator[str]:
    path = folder / f"{split}.{suffix}"
    try:
        if not path.exists() or file_sha256(path) != about.files[path.name].sha256:
            raise KdxError(
                "this file is not what was prepared",
                place=str(path),
                hint=f"remove {folder}, then: kdx data prepare {about.name} --from {about.source}",
            )
        # Only a line feed ends a line, since other characters, such as U+2028, would misalign the two sides.
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for line in islice(file, train_lines if split is Split.TRAIN else None):
                yield line.removesuffix("\n")
    except OSError as error:
        raise KdxError(f"cannot be read: {error.strerror}", place=str(path)) from error
