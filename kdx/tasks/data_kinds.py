"""The kinds of data that several tasks, or the corpora that kdx generates, share."""

from kdx.tasks.definition import DataKind

PARALLEL_TEXT = DataKind(
    word="parallel text",
    items="sentences",
    reader="kdx.data.parallel:load_parallel",
    other_reader="kdx.data.other_text:load_other_parallel",
    dictionaries=True,
)
PLAIN_TEXT = DataKind(
    word="plain text",
    items="streams",
    reader="kdx.data.stream:load_stream",
    other_reader="kdx.data.other_text:load_other_stream",
    suffixes=("txt",),
    streams=True,
)
EXAMPLES = DataKind(word="generated examples", items="examples", reader="kdx.data.generated:load_examples", text=False)
