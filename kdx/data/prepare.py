"""Checks real text and copies it into the data home: `<home>/corpora/<name>/train.de`, …, and `about.json`.

The text comes from a folder, an archive or an address; fetched archives stay in `<home>/downloads`.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from kdx.data.download import download, file_name, is_address
from kdx.data.examples import GeneratedExamples
from kdx.data.prepared import ABOUT, FileInfo, PreparedInfo, corpus_folder, read_about
from kdx.data.storage import data_home, new_folder
from kdx.data.text import (
    Files,
    GeneratedText,
    KnownFile,
    KnownText,
    Original,
    Progress,
    TextFile,
    decoded,
    no_progress,
)
from kdx.data.text_files import UnreadableError, corpus_files, open_source
from kdx.errors import KdxError, shortened
from kdx.shell import kdx_command, shell_word
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Split

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def prepare(
    name: str,
    source: Path | str | None = None,
    home: Path | None = None,
    *,
    tokenised: bool = False,
    progress: Progress = no_progress,
) -> PreparedInfo:
    """Check a text and copy it as the corpus `name`.

    Preparing the same text again changes nothing.

    Args:
        name: name of the corpus in grids.
        source: a folder, an archive, or an HTTP address; None for the address that kdx knows.
        home: the data home; None for the user's.
        tokenised: whether punctuation is already separated; kdx knows this for most known corpora.
        progress: called with the progress of long steps.

    Raises:
        KdxError: `source` has no text of this corpus, or a damaged one, or it cannot be fetched; the text differs from
            the known corpus of this name, or another text already has the name.
        StorageError: the disk is full, or the data home cannot be written.
    """
    known = BUILT_IN.get(name)
    if isinstance(known, GeneratedText | GeneratedExamples):
        raise KdxError(f"corpus `{name}` is generated: there is nothing to prepare", hint="use it as it is")
    if not _NAME.fullmatch(name):
        raise KdxError(
            f"`{shortened(name)}` cannot name a corpus", allowed="up to 64 letters, digits, and . _ - after the first"
        )
    home = home or data_home()
    folder = corpus_folder(name, home)
    with _at_hand(name, known, source, home, progress) as (path, origin), open_source(path, home) as files_inside:
        suffixes, text = _text(path, files_inside, known, progress)
        texts, notes = text.texts, list(text.notes)
        present = read_about(folder)
        if present is None and folder.exists():
            raise KdxError("something else than a prepared corpus is in the way", place=str(folder), hint="remove it")
        with new_folder(folder) as filling:
            files = {file: _copy(text, filling / file, progress) for file, text in texts.items()}
            _check_sides(texts, files, suffixes)
            if len(suffixes) > 1:
                # In plain text an empty line is meaningful.
                notes += [f"{file}: {info.empty:,} lines without a word" for file, info in files.items() if info.empty]
            if known:
                notes += _check_known(texts, files, name, known)
            about = PreparedInfo(
                name=name,
                source=origin,
                suffixes=suffixes,
                licence=known.licence if known else None,
                tokenised=tokenised or (known is not None and known.tokenised),
                files=files,
                notes=tuple(notes),
            )
            if present:
                _check_same(present, about, folder)
            (filling / ABOUT).write_text(json.dumps(asdict(about), indent=2, ensure_ascii=False), encoding="utf-8")
    return present or about


@contextmanager
def _at_hand(
    name: str, known: KnownText | None, source: Path | str | None, home: Path, progress: Progress
) -> Iterator[tuple[Path, str]]:
    """Yield the path of the text, and its origin for `about.json`. A fetched archive that is damaged is removed."""
    address = str(source) if is_address(source) else None
    if source is None:
        if known is None or known.address is None:
            problem = f"the text of `{name}` cannot be fetched" if known else f"kdx does not know a corpus `{name}`"
            by_hand = f"{known.by_hand}; then: " if known else "of your own: "
            raise KdxError(problem, hint=f"{by_hand}{kdx_command('data prepare', name, options=' --from PATH')}")
        address = known.address
    if address is None:
        path = Path(str(source))
        with suppress(RuntimeError):  # such as ~nobody
            path = path.expanduser()
        yield path, str(path.absolute())
        return
    path = download(
        address,
        home / "downloads",
        sha256=known.archive_sha256 if known and address == known.address else None,
        progress=progress,
        otherwise="fetch it by other means, then: "
        + kdx_command("data prepare", name, options=f" --from {shell_word(file_name(address))}"),
    )
    try:
        yield path, address
    except UnreadableError as error:
        path.unlink(missing_ok=True)
        error.hint = "what was fetched is damaged and was removed; the same command fetches it anew"
        raise


def _text(path: Path, files: Files, known: KnownText | None, progress: Progress) -> tuple[tuple[str, ...], Original]:
    """Return the suffixes and the corpus of these files, which are in a folder or an archive at `path`."""
    if known and known.original:
        try:
            original = known.original(files, progress)
        except KdxError as error:
            error.place = error.place or str(path)
            raise
        if original:
            return known.suffixes, original
    suffixes, texts = corpus_files(path, files, known)
    return suffixes, known.processed(texts, progress) if known and known.processed else Original(texts)


def _copy(text: TextFile, path: Path, progress: Progress) -> FileInfo:
    sha256 = hashlib.sha256()
    number = words = empty = done = 0
    with path.open("wb") as copy:
        for number, line in enumerate(text.lines(), 1):
            words_here = len(decoded(line, text.place, number).split())
            words += words_here
            empty += not words_here
            sha256.update(line)
            copy.write(line)
            done += len(line)
            if number % 100_000 == 0:
                progress(f"copying {path.name}", done, text.size or None)
    if not words:
        raise KdxError("no words in it", place=text.place)
    return FileInfo(number, words, sha256.hexdigest(), empty)


def _check_sides(texts: Mapping[str, TextFile], files: Mapping[str, FileInfo], suffixes: tuple[str, ...]) -> None:
    for split in Split:
        first, *others = (f"{split}.{suffix}" for suffix in suffixes)
        for other in others:
            if files[other].lines != files[first].lines:
                raise KdxError(
                    f"{files[other].lines} lines, but {first} has {files[first].lines}; line by line they must match",
                    place=texts[other].place,
                )


def _check_known(
    texts: Mapping[str, TextFile], files: Mapping[str, FileInfo], name: str, known: KnownText
) -> list[str]:
    """Return notes on the differences from the known text, if differences are allowed."""
    notes = []
    for file, expected in known.files.items():
        differences = ", ".join(_differences(files[file], expected))
        if differences and known.exact:
            raise KdxError(
                f"not the {file} of {name}: {differences}",
                place=texts[file].place,
                hint="to use it all the same, prepare it under another name",
            )
        if differences:
            notes.append(f"{file}: {differences}")
    return notes


def _differences(info: FileInfo, expected: KnownFile) -> Iterator[str]:
    same_lines = expected.about or info.lines == expected.lines
    same_words = expected.words in (None, info.words)
    if not same_lines:
        yield f"{info.lines:,} lines instead of {expected.lines:,}"
    if not same_words:
        yield f"{info.words:,} words instead of {expected.words:,}"
    if expected.sha256 is not None and expected.sha256 != info.sha256:
        other = "other text, " if same_lines and same_words else ""
        yield f"{other}sha256 {info.sha256[:12]}… instead of {expected.sha256[:12]}…"


def _check_same(present: PreparedInfo, about: PreparedInfo, folder: Path) -> None:
    def text(info: PreparedInfo) -> dict[str, str]:
        return {name: file.sha256 for name, file in info.files.items()}

    problem = None
    if text(present) != text(about):
        problem = f"with another text, prepared from {present.source}"
    elif present.tokenised != about.tokenised:
        problem = f"as text that {'is' if present.tokenised else 'is not'} tokenised"
    if problem:
        raise KdxError(
            f"corpus `{about.name}` is already there {problem}", hint=f"take another name, or remove {folder}"
        )
