"""The kinds of data that tasks learn from."""

from dataclasses import dataclass
from typing import Any

from kdx.words.family import imported


@dataclass(frozen=True, kw_only=True)
class DataKind:
    """The kind of data that a task learns from, and how a corpus of that kind is read."""

    word: str
    """Its name, such as `parallel text`."""
    items: str
    """Name of its examples, in the plural."""
    reader: str
    """`module:function` that reads a corpus of this kind, given its `Data`, the data home and the task; imported when
    used."""
    other_reader: str | None = None
    """`module:function` that reads one split of another text with the vocabulary of a corpus of this kind; None if this
    kind has no other texts."""
    text: bool = True
    """Whether it is text, which has a vocabulary, and not generated examples."""
    suffixes: tuple[str, ...] | None = None
    """Suffixes of its files, if they are the same for every corpus; None with two languages, or without files."""
    streams: bool = False
    """Whether it is read as streams, end to end, and not item by item."""
    dictionaries: bool = False
    """Whether each of its languages may have its own vocabulary."""

    def read(self) -> Any:
        """Return the function behind `reader`, such as `kdx.data.stream.load_stream`."""
        return imported(self.reader)

    def read_other(self) -> Any:
        """Return the function behind `other_reader`, such as `kdx.data.stream.load_other_stream`."""
        assert self.other_reader is not None
        return imported(self.other_reader)


PARALLEL_TEXT = DataKind(
    word="parallel text",
    items="sentences",
    reader="kdx.data.parallel:load_parallel",
    other_reader="kdx.data.parallel:load_other_parallel",
    dictionaries=True,
)
PLAIN_TEXT = DataKind(
    word="plain text",
    items="streams",
    reader="kdx.data.stream:load_stream",
    other_reader="kdx.data.stream:load_other_stream",
    suffixes=("txt",),
    streams=True,
)
LABELLED_TEXT = DataKind(
    word="labelled text",
    items="lines",
    reader="kdx.data.labelled:load_labelled",
    suffixes=("txt", "labels"),
)
EXAMPLES = DataKind(word="generated examples", items="examples", reader="kdx.data.generated:load_examples", text=False)

DATA_KINDS = {kind.word: kind for kind in (PARALLEL_TEXT, PLAIN_TEXT, LABELLED_TEXT, EXAMPLES)}


def text_kind(suffixes: tuple[str, ...]) -> DataKind:
    """Return the kind of a text whose files have these suffixes: the kind that always has them, or parallel text."""
    same = (kind for kind in DATA_KINDS.values() if kind.suffixes and sorted(kind.suffixes) == sorted(suffixes))
    return next(same, PARALLEL_TEXT)
