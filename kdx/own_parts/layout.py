"""Where recorded sources go when they are written out, so that `--parts FOLDER` finds them again."""

from collections.abc import Iterable, Mapping

from kdx.errors import KdxError
from kdx.own_parts.part import are_sources, hash_of
from kdx.own_parts.read import folder_in


def laid_out(parts: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, str]:
    """Path below the folder → text.

    A file lies where its word says. Where two parts have different files of one name, the later one goes into a folder
    named after its hash.

    Args:
        parts: word, hash and sources of each, as a database has them.

    Raises:
        KdxError: a word or a source has a path that no part has, or the source another hash; a database may be
            anybody's.
    """
    files: dict[str, str] = {}
    for word, sha256, sources in parts:
        folder = folder_in(word)
        if folder is None or not are_sources(sources) or hash_of(sources) != sha256:
            raise KdxError(f"what was recorded of `{word}` is not the source that its cells were made with")
        own = {f"{folder}{path}": text for path, text in sources.items()}
        if any(files.get(path, text) != text for path, text in own.items()):
            own = {f"{sha256[:12]}/{path}": text for path, text in own.items()}
        files |= own
    return files
