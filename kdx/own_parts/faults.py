"""Where in the source of a part an error came from."""

import traceback
from collections.abc import Iterable

from kdx.errors import KdxError, PartError, Place
from kdx.own_parts.part import OwnPart


def fault_of(error: BaseException, word: str, parts: Iterable[OwnPart]) -> KdxError:
    """An error that a part raised, or that a check found in it, as one message at a line of its source.

    That is the last line of a part that the error went through; else the class in which it was found, or that of the
    part that was tried.

    Args:
        word: the part or parts that were tried.
        parts: those whose sources it may have gone through.
    """
    if isinstance(error, KdxError) and error.place is not None:
        return error
    parts = tuple(parts)
    files = {part.file(module) for part in parts for module in part.paths}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    found = _found_in(error, word, parts)
    place = None
    if isinstance(error, SyntaxError) and error.filename in files:
        place = Place(str(error.filename), error.lineno or 1, error.offset or 1)
    elif frames:
        place = Place(frames[-1].filename, frames[-1].lineno or 1, 1)
    elif found is not None:
        place = found.class_place
    if isinstance(error, KdxError):
        problem = f"`{found.word if found else word}`: {error.problem}"
        return KdxError(problem, place=place, allowed=error.allowed, hint=error.hint)
    return KdxError(f"`{word}` fails: {traceback.format_exception_only(error)[-1].strip()}", place=place)


def _found_in(error: BaseException, word: str, parts: tuple[OwnPart, ...]) -> OwnPart | None:
    if isinstance(error, PartError) and error.part is not None:
        named = (part for part in parts if part.name == error.part.__name__)
        return next((part for part in named if part.load() is error.part), None)
    return next((part for part in parts if part.word == word), None)
