"""Brings the parts that recorded runs need, from where the user says that they are."""

from collections.abc import Mapping
from pathlib import Path

from kdx.errors import KdxError
from kdx.own_parts.read import find, is_in_file
from kdx.own_parts.registry import add


def bring(missing: Mapping[tuple[str, str], str], folder: Path | None, place: str) -> None:
    """Makes the parts that cells of a database have words of this process.

    The database says which sources they were, never where to find them.

    Args:
        missing: (axis, word) → the hash of its source.
        folder: where the user says that the files lie; None: said nothing.
        place: of messages.

    Raises:
        KdxError: a part is not there, or its source is another one.
    """
    for (axis, word), sha256 in missing.items():
        if folder is None and is_in_file(word):
            raise KdxError(
                f"its cells use `{word}`, whose code this command would run",
                place=place,
                hint="name the folder where the file lies: --parts FOLDER, or parts='FOLDER' in Python;"
                " kdx export --parts FOLDER writes out the source that was recorded, to be read first",
            )
        part = find(axis, word, folder or Path())
        if part is None:
            raise KdxError(
                f"its cells use {axis} `{word}`, which no installed package brings",
                place=place,
                hint="install the package; kdx export --parts FOLDER writes out the source that was recorded",
            )
        if part.sha256 != sha256:
            raise KdxError(
                f"the source of `{word}` is not the one that its cells were made with",
                place=part.file(part.module),
                hint="kdx export --parts FOLDER writes that one out;"
                " with the new source, kdx sweep GRID makes new cells",
            )
        add(part)
