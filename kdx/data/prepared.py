"""The prepared corpora of the data home, as the `about.json` of each describes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kdx.data.storage import data_home
from kdx.data.text import KnownText
from kdx.errors import KdxError
from kdx.tasks.corpora import BUILT_IN

ABOUT = "about.json"


@dataclass(frozen=True)
class FileInfo:
    """The contents of a prepared file."""

    lines: int
    words: int
    """Runs of characters between white space."""
    sha256: str
    empty: int
    """Number of lines without a word."""


@dataclass(frozen=True)
class PreparedInfo:
    """A prepared corpus, as its `about.json` describes it."""

    name: str
    source: str
    """The folder, archive or address that it was prepared from."""
    suffixes: tuple[str, ...]
    """The source and the target language; only `txt` for plain text."""
    licence: str | None
    """The licence; None if unknown."""
    tokenised: bool
    """Whether punctuation is already separated, as far as kdx knows."""
    files: Mapping[str, FileInfo]
    """Name, such as `train.de` → contents."""
    notes: tuple[str, ...] = ()
    """Differences from the known corpus of this name, and other remarks."""


_ABOUT_OF = TypeAdapter(PreparedInfo)


def corpus_folder(name: str, home: Path | None = None) -> Path:
    """Return the folder of a prepared corpus."""
    return (home or data_home()) / "corpora" / name


def read_about(folder: Path) -> PreparedInfo | None:
    """Reads the description of the prepared corpus in `folder`; None if there is none.

    Raises:
        KdxError: `about.json` is damaged, or cannot be read.
    """
    path = folder / ABOUT
    try:
        return _ABOUT_OF.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        problem = f"the description of a corpus is damaged: {error.errors(include_url=False)[0]['msg']}"
        hint = f"remove {folder} and prepare the corpus again"
        raise KdxError(problem, place=str(path), hint=hint) from error
    except OSError as error:
        raise KdxError(f"cannot be read: {error.strerror}", place=str(path)) from error


def prepared_corpora(home: Path | None = None) -> list[PreparedInfo]:
    """Return every prepared corpus, sorted by name."""
    folders = sorted(corpus_folder("", home).glob("[!.]*/"))
    return [about for folder in folders if (about := read_about(folder))]


def how_to_prepare(name: str) -> str:
    """Return the command that prepares a corpus."""
    known = BUILT_IN.get(name)
    fetched = isinstance(known, KnownText) and known.address
    return f"kdx data prepare {name}" + ("" if fetched else " --from PATH")
