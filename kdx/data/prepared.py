"""The prepared corpora of the data home: reads and checks the `about.json` of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from kdx.data.storage import data_home
from kdx.data.text import KnownText, file_names
from kdx.data.text_files import LANGUAGE
from kdx.errors import KdxError
from kdx.files import read_file
from kdx.tasks.corpora import BUILT_IN
from kdx.tasks.data_kinds import text_kind

ABOUT = "about.json"
_LONGEST_ABOUT = 1_000_000  # bytes
_STRICT = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True)
class FileInfo:
    """The contents of a prepared file."""

    __pydantic_config__ = _STRICT
    lines: Annotated[int, Field(ge=0)]
    words: Annotated[int, Field(ge=0)]
    """Runs of characters between white space."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    empty: Annotated[int, Field(ge=0)]
    """Number of lines without a word."""


@dataclass(frozen=True)
class PreparedInfo:
    """A prepared corpus, as its `about.json` describes it."""

    __pydantic_config__ = _STRICT
    name: str
    source: str
    """The folder, archive or address that it was prepared from."""
    suffixes: tuple[str, ...]
    """The source and the target language; only `txt` for plain text."""
    licence: str | None
    """None if kdx does not know it."""
    tokenised: bool
    """Whether punctuation is already separated, as far as kdx knows."""
    files: Mapping[str, FileInfo]
    """Name, such as `train.de` → contents."""
    notes: tuple[str, ...] = ()
    """Differences from the known corpus of this name, and other remarks."""


_ABOUT_OF = TypeAdapter(PreparedInfo)


def corpus_folder(name: str, home: Path | None = None) -> Path:
    """The folder of a prepared corpus."""
    return (home or data_home()) / "corpora" / name


def read_about(folder: Path) -> PreparedInfo | None:
    """Reads the description of the prepared corpus in `folder`; None if there is none.

    The description is checked to name only files of a corpus in this folder.

    Raises:
        KdxError: `about.json` is damaged, or describes something else.
    """
    path = folder / ABOUT
    hint = f"remove {folder} and prepare the corpus again"
    try:
        about = _ABOUT_OF.validate_json(read_file(path, _LONGEST_ABOUT, follow=False))
        if problem := _contradiction(about, folder):
            raise ValueError(problem)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first["loc"] else first["msg"]
        raise KdxError(f"this does not tell what corpus it is: {problem}", place=str(path), hint=hint) from error
    except ValueError as error:
        raise KdxError(f"this does not tell what corpus it is: {error}", place=str(path), hint=hint) from error
    except OSError as error:
        raise KdxError(f"cannot be read: {error.strerror}", place=str(path)) from error
    return about


def _contradiction(about: PreparedInfo, folder: Path) -> str | None:
    """Why the description cannot be of a corpus in `folder`; None if it can. Its names must be plain file names."""
    if about.name != folder.name:
        return f"it is of `{about.name}`"
    languages = len(about.suffixes) == 2 and len(set(about.suffixes)) == 2
    fixed = text_kind(about.suffixes).suffixes == about.suffixes
    if not fixed and not (languages and all(map(LANGUAGE.fullmatch, about.suffixes))):
        return f"no languages {', '.join(about.suffixes)}"
    if sorted(about.files) != sorted(names := file_names(about.suffixes)):
        return f"it has files {', '.join(about.files)} instead of {', '.join(names)}"
    return None


def prepared_corpora(home: Path | None = None) -> list[PreparedInfo]:
    """Every prepared corpus, by name."""
    folders = sorted(corpus_folder("", home).glob("[!.]*/"))
    return [about for folder in folders if (about := read_about(folder))]


def how_to_prepare(name: str) -> str:
    """The command that prepares a corpus."""
    known = BUILT_IN.get(name)
    fetched = isinstance(known, KnownText) and known.address
    return f"kdx data prepare {name}" + ("" if fetched else " --from PATH")
