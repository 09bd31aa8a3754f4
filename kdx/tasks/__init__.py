"""What kdx can train models for: word → definition.

Text is translated and predicted, as in the paper; beyond it, text is classified, and generated examples give the pixels
of an image one by one, the class of a set, the class of streams of several modalities, the shortest tour, what
a node of a graph is to another, and the answers in a sequence.
"""

from kdx.tasks import answer, classification, graph, image, multimodal, prediction, set, tour, translation
from kdx.tasks.definition import DataKind, Task

TASKS: dict[str, Task] = {
    one.TASK.word: one.TASK
    for one in (translation, prediction, classification, image, set, multimodal, tour, graph, answer)
}


def text_kind(suffixes: tuple[str, ...]) -> DataKind:
    """The kind of a text whose files have these suffixes: one that always has them, or parallel text."""
    kinds = [task.data for task in TASKS.values() if task.data.text]
    same = (kind for kind in kinds if kind.suffixes is not None and sorted(kind.suffixes) == sorted(suffixes))
    return next(same, None) or next(kind for kind in kinds if kind.suffixes is None)
