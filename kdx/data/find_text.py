"""Which text a grid names: generated or prepared, in which direction, and whether it is what it was."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kdx.axes import Split
from kdx.data import BUILT_IN
from kdx.data.examples import GeneratedExamples
from kdx.data.prepare import PreparedInfo, corpus_folder, prepared_corpora, read_about
from kdx.data.text import GeneratedText, Lines
from kdx.errors import KdxError, did_you_mean
from kdx.grid.sections import Data


@dataclass(frozen=True)
class FoundText:
    """A text that is there to be read."""

    suffixes: tuple[str, ...]
    """The language translated from and the one translated to; `txt` alone for plain text."""
    tokenised: bool
    """Whether punctuation already stands apart."""
    identity: Any
    """Another text has another one; JSON can hold it."""
    read: Callable[[], Lines]
    """Every line of every split, words with one space between them."""


def find_text(data: Data, home: Path) -> FoundText:
    """The text that `data` names.

    Raises:
        KdxError: there is no such corpus, its files were changed, or it has no such direction or seed.
    """
    built_in = BUILT_IN.get(data.corpus)
    if isinstance(built_in, GeneratedText):
        lines = data.train_lines or built_in.train_lines
        return FoundText(
            suffixes=_direction(data, built_in.suffixes),
            tokenised=True,
            identity=[data.corpus, data.seed, lines],
            read=partial(built_in.generate, data.seed, lines),
        )
    if isinstance(built_in, GeneratedExamples):
        usable = sorted(corpus_names(home, parallel=True) + corpus_names(home, parallel=False))
        problem = f"`{data.corpus}` is no text: it is for task {built_in.task}"
        raise KdxError(problem, place="data.corpus", allowed=usable)
    about = read_about(corpus_folder(data.corpus, home))
    if about is None:
        raise _unknown(data.corpus, home)
    if data.seed:
        raise KdxError(f"`{data.corpus}` is not generated, so it has no seed", place="data.seed", allowed="0")
    return FoundText(
        suffixes=_direction(data, about.suffixes),
        tokenised=about.tokenised,
        identity=_digests(about, home),
        read=partial(_read, about, home, data.train_lines),
    )


def corpus_names(home: Path, *, parallel: bool) -> list[str]:
    """Those that can be used at once, of one kind: built-in generated ones and prepared ones."""
    found = {name: text.suffixes for name, text in BUILT_IN.items() if isinstance(text, GeneratedText)}
    found |= {about.name: about.suffixes for about in prepared_corpora(home)}
    return sorted(name for name, suffixes in found.items() if (len(suffixes) > 1) is parallel)


def _unknown(name: str, home: Path) -> KdxError:
    usable = corpus_names(home, parallel=True) + corpus_names(home, parallel=False)
    texts = {*usable, *(known for known, text in BUILT_IN.items() if not isinstance(text, GeneratedExamples))}
    hint = f"kdx data prepare {name} --from PATH"
    if name in BUILT_IN:
        return KdxError(f"corpus `{name}` is not prepared yet", place="data.corpus", hint=hint)
    near = did_you_mean(name, texts)
    hint = f"{near}; your own text: {hint}" if near else hint
    return KdxError(f"unknown corpus `{name}`", place="data.corpus", allowed=sorted(texts), hint=hint)


def _direction(data: Data, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    if data.source is None or data.target is None:
        return suffixes
    if len(suffixes) == 1:
        raise KdxError(
            f"`{data.corpus}` is plain text: it has no languages to translate between",
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


def _digests(about: PreparedInfo, home: Path) -> dict[str, str]:
    folder = corpus_folder(about.name, home)
    digests = {}
    for name, told in about.files.items():
        try:
            with (folder / name).open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            digests[name] = "absent"
        if digests[name] != told.sha256:
            raise KdxError(
                "this file is not what was prepared",
                place=str(folder / name),
                hint=f"remove {folder}, then: kdx data prepare {about.name} --from {about.source}",
            )
    return digests


def _read(about: PreparedInfo, home: Path, train_lines: int | None) -> Lines:
    text = {
        split: {suffix: _lines(corpus_folder(about.name, home) / f"{split}.{suffix}") for suffix in about.suffixes}
        for split in Split
    }
    if train_lines is not None:
        there = about.files[f"{Split.TRAIN}.{about.suffixes[0]}"].lines
        if train_lines > there:
            raise KdxError(
                f"{train_lines} lines wanted, but the training text of `{about.name}` has {there}",
                place="data.train_lines",
                allowed=f"at most {there}",
            )
        text[Split.TRAIN] = {suffix: lines[:train_lines] for suffix, lines in text[Split.TRAIN].items()}
    return text


def _lines(path: Path) -> list[str]:
    # Not splitlines(): it also breaks at signs inside a line, such as U+2028, and the two sides would part company.
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    if not lines[-1]:
        lines.pop()
    return [" ".join(line.split()) for line in lines]
