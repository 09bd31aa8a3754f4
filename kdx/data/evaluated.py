"""The corpus that an evaluation reads: another split of the run's corpus, or another text in the tokens of the run."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from kdx.data.corpus import Corpus
from kdx.data.reading import check_reading
from kdx.errors import KdxError
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.vocabulary import Split


def evaluated_corpus(spec: CellSpec, evaluation: ResolvedEvaluation, corpus: Any, home: Path | None = None) -> Any:
    """Return a copy of a cell's corpus in which every split is the text that an evaluation reads.

    Args:
        corpus: corpus that the run was trained with.
        home: folder of prepared corpora; None for the user's.

    Raises:
        KdxError: the text does not exist, or does not fill the length or the memory of the evaluation.
        StorageError: the cache cannot be written.
    """
    split, read, name = evaluation.split, corpus, spec.data.corpus
    if evaluation.other_corpus is not None:
        name = evaluation.other_corpus
        # These settings describe how the run's own text is generated or cut, so they do not apply to another text.
        data = spec.data.model_copy(update={"corpus": name, "train_lines": None, "seed": 0})
        try:
            read = TASKS.definition(spec.task).data.read_other()(data, spec.data, corpus, split, home)
        except KdxError as error:
            if error.place != "data.corpus":
                raise
            raise type(error)(error.problem, place="corpus", allowed=error.allowed, hint=error.hint) from error
    check_reading(evaluation.spec, read, splits=(split,), text=name)
    return _with_one_split(read, split)


def _with_one_split(corpus: Any, split: Split) -> Corpus:
    """Return a copy of a corpus in which every split, and the facts of the test, are those of `split`."""
    known = {each.name: getattr(corpus, each.name) for each in fields(corpus)}
    changes = {
        name: dict.fromkeys(Split, value[split])
        for name, value in known.items()
        if isinstance(value, Mapping) and split in value
    }
    of_split = f"{split}/"
    facts = {
        f"{Split.TEST}/{name.removeprefix(of_split)}": fact
        for name, fact in corpus.facts.items()
        if name.startswith(of_split)
    }
    changed: Corpus = replace(corpus, facts={**corpus.facts, **facts}, **changes)
    return changed
