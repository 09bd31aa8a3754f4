"""The components of recorded cells: where their sources are found, and where they are written to.

A database says which sources they were, never where to find them or what to run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kdx.components.component import Component
from kdx.components.find import IN_FILE, SOURCE, find, is_in_file
from kdx.components.registry import add
from kdx.errors import KdxError


def folders_of(grid: str, components: Path | None = None) -> tuple[Path, ...]:
    """The folders where the files of a sweep's components are looked for.

    Args:
        grid: the file of the grid, as the database has it. Somebody may have made the database, so that its folder
            counts only if it lies below the current one.
        components: the folder that the user named; no other one counts then.
    """
    if components is not None:
        return (components,)
    here, beside = Path.cwd(), Path(grid).parent
    return (beside, here) if grid and beside.resolve().is_relative_to(here.resolve()) else (here,)


def bring(missing: Mapping[tuple[str, str], str], folders: Iterable[Path], place: str) -> None:
    """Make the components that cells of a database have words of this process.

    Args:
        missing: (axis, word) → the hash of its source.
        folders: where files are looked for, see `folders_of`.
        place: of messages.

    Raises:
        KdxError: a component is not there, or its source is another one.
    """
    folders = tuple(folders)
    for (axis, word), sha256 in missing.items():
        found = list(_found(axis, word, folders))
        same = next((one for one in found if one.sha256 == sha256), None)
        if same is not None:
            add(same)
        elif found:
            raise KdxError(
                f"the source of `{word}` is not the one that its cells were made with",
                place=str(Path(found[0].folder, found[0].path)),
                hint="kdx export --components FOLDER writes that one out;"
                " with the new source, kdx sweep GRID makes new cells",
            )
        elif is_in_file(word):
            where = " and ".join(map(str, dict.fromkeys(folders)))
            raise KdxError(
                f"its cells use `{word}`, which is not in {where}",
                place=place,
                hint="name the folder where the file lies: --components FOLDER, or components='FOLDER' in Python;"
                " kdx export --components FOLDER writes out the source that was recorded, to be read first",
            )
        else:
            raise KdxError(
                f"its cells use {axis} `{word}`, which no installed package brings",
                place=place,
                hint="install the package; kdx export --components FOLDER writes out the source that was recorded",
            )


def is_found(word: str, sha256: str, folders: Iterable[Path]) -> bool:
    """Whether a class in a file is found in these folders, with this source."""
    return any(one.sha256 == sha256 for one in _found("", word, folders))


def _found(axis: str, word: str, folders: Iterable[Path]) -> Iterator[Component]:
    """What has this name: in a file, where the word says, or beside the grid if the file was moved there."""
    if not is_in_file(word):
        component = find(axis, word, Path())
        yield from () if component is None else (component,)
        return
    if not IN_FILE.fullmatch(word):
        raise KdxError(f"`{word}` names no component", allowed="FILE.py:Class")
    for folder in folders:
        file, _, name = word.rpartition(":")
        for path in dict.fromkeys((Path(file), Path(Path(file).name))):
            if (folder / path).is_file():
                base = find(axis, f"{path.name}:{name}", (folder / path).parent)
                if base is not None:
                    yield replace(base, word=word)


def laid_out(components: Iterable[Component]) -> dict[str, str]:
    """Return path below a folder → text, so that `--components FOLDER` finds the components there.

    If two components have different files of one name, the later one goes into a folder named after its hash.

    Raises:
        KdxError: a path leads out of the folder, since somebody edited the database.
    """
    files: dict[str, str] = {}
    for component in components:
        match = IN_FILE.fullmatch(component.word)
        paths_hold = all(SOURCE.fullmatch(path) and ".py/" not in path for path in component.sources)
        if not paths_hold or (is_in_file(component.word) and not match):
            raise KdxError(f"what was recorded of `{component.word}` is not the source that its cells were made with")
        folder, file = match.groups() if match else ("", component.path)
        own = {f"{folder}{file if path == component.path else path}": text for path, text in component.sources.items()}
        if any(files.get(path, text) != text for path, text in own.items()):
            own = {f"{component.sha256[:12]}/{path}": text for path, text in own.items()}
        files |= own
    return files
