"""A text of a few lines, of the kind that a task reads, to try the task on (`kdx.training.rehearsal`)."""

import tempfile
from pathlib import Path
from typing import Any

from kdx.data.prepare import prepare
from kdx.data.vocabulary import SPECIAL
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.vocabulary import Split

ROWS, LENGTH = 2, 8
"""Lines or streams of a batch, and tokens of each."""
_NAME = "few-lines"
_TEXT = "a text of few lines has words that stand in each line and some do not"
_LINES = {Split.TRAIN: 8, Split.VALID: 4, Split.TEST: 4}
_WORDS_OF_A_LINE = 5
_LEAST_VOCABULARY = 100  # tokens, of which letters are some
_LONGEST = (1.0, 2)  # tokens of a translation for each of its source, and more


def few_lines(spec: CellSpec) -> tuple[CellSpec, Any]:
    """Return the cell with batches, segments and translations of a few tokens, and a corpus of that size for it.

    The text is read as any other of its kind, into a vocabulary of the kind that the cell has.
    """
    task = TASKS.definition(spec.task)
    data, training, model, evaluation = spec.data, spec.training, spec.model, spec.evaluation
    size = data.vocabulary_size and max(data.vocabulary_size, _LEAST_VOCABULARY)
    wanted = {"corpus": _NAME, "vocabulary_size": size, "train_lines": None, "max_tokens": 128, "seed": 0}
    of_lines = {"batch_tokens": ROWS * LENGTH, "length": training.length and LENGTH}
    read = {"longest": _LONGEST, "streams": evaluation.streams and ROWS, "length": evaluation.length and LENGTH}
    # As many clusters, of which each has words.
    cutoffs = tuple(range(SPECIAL + 1, SPECIAL + 1 + len(model.cutoffs)))
    few = spec.model_copy(
        update={
            "data": data.model_copy(update=wanted),
            "training": training.model_copy(update=of_lines),
            "model": model.model_copy(update={"cutoffs": cutoffs}),
            "evaluation": evaluation.model_copy(update=read),
        }
    )
    with tempfile.TemporaryDirectory(prefix="kdx-trial-") as folder:
        home, text = Path(folder, "home"), Path(folder, "text")
        text.mkdir()
        suffixes = task.data.suffixes or (data.source or "de", data.target or "en")
        for split, count in _LINES.items():
            for suffix in suffixes:
                lines = [("even", "odd")[line % 2] if suffix == "labels" else _line(line) for line in range(count)]
                (text / f"{split}.{suffix}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        # Tokenised text has all of the metrics that raw text has, and more.
        prepare(_NAME, text, home, tokenised=True)
        return few, task.data.read()(few.data, home, task)


def _line(number: int) -> str:
    words = _TEXT.split()
    return " ".join(words[(3 * number + word) % len(words)] for word in range(_WORDS_OF_A_LINE))
