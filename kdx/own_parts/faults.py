"""Where in the source of a part an error came from."""

import traceback
from collections.abc import Iterable

from kdx.errors import KdxError, Place
from kdx.own_parts.part import OwnPart


def fault_of(error: BaseException, word: str, parts: Iterable[OwnPart]) -> KdxError:
    """An error that a part raised, as one message: what it was, at the last line of a part that it went through.

    Args:
        word: the part or parts that were tried.
        parts: those whose sources it may have gone through.
    """
    files = {part.file(module) for part in parts for module in part.paths}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    place = None
    if isinstance(error, SyntaxError) and error.filename in files:
        place = Place(str(error.filename), error.lineno or 1, error.offset or 1)
    elif frames:
        place = Place(frames[-1].filename, frames[-1].lineno or 1, 1)
    problem = traceback.format_exception_only(error)[-1].strip()
    return KdxError(f"`{word}` fails: {problem}", place=place)
