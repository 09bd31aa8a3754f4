"""Whether the corpora of a plan are there and fit its cells, told before anything starts."""

from kdx.axes import Split, Task
from kdx.data.corpus import ParallelCorpus, load_corpus
from kdx.data.find_text import find_text
from kdx.data.prepare import corpus_folder, read_about
from kdx.data.storage import data_home
from kdx.errors import KdxError, by_place
from kdx.grid.faults import in_file
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.sections import Data

LARGE = 5_000_000
"""Words of training text, of both languages, that take more than ten seconds to become tokens."""

_LANGUAGES = {Task.PREDICTION: 1, Task.TRANSLATION: 2}


def prepare_data(plan: Plan, *, large: bool = True) -> list[str]:
    """Makes every corpus of the plan ready, once, before workers ask for it; what is to be said of them.

    Args:
        large: whether large texts are tokenised too. If not, whether they are there and of the right kind is all that
            is looked at.

    Raises:
        Faults: all that is missing or does not fit its task, each where the grid has it.
        StorageError: the cache cannot be written.
    """
    users: dict[tuple[Task, str], list[PlannedCell]] = {}
    for cell in plan.cells:
        users.setdefault((cell.spec.task, cell.spec.data.model_dump_json()), []).append(cell)
    notes: list[str] = []
    faults: dict[str, KdxError] = {}
    for cells in users.values():
        try:
            notes += _prepared(cells[0].spec.task, cells[0].spec.data, large=large)
        except KdxError as fault:
            if fault.exit_code != KdxError.exit_code:
                raise
            told = in_file(fault, cells[0])
            faults.setdefault(str(told), told)
    if faults:
        raise by_place(faults.values())
    return list(dict.fromkeys(notes))


def _prepared(task: Task, data: Data, *, large: bool) -> list[str]:
    if not large and _is_large(task, data):
        find_text(data, data_home())
        return [f"{data.corpus} is large: kdx sweep looks into its text, which is not done here"]
    corpus = load_corpus(task, data)
    if not isinstance(corpus, ParallelCorpus) or not corpus.left_out:
        return []
    pairs = corpus.left_out + len(corpus.splits[Split.TRAIN].sources)
    return [
        f"{data.corpus}: {corpus.left_out:,} of {pairs:,} training pairs are left out;"
        f" a side is empty or has more than {data.max_tokens:,} tokens (data.max_tokens)"
    ]


def _is_large(task: Task, data: Data) -> bool:
    """Whether it is a text for this task that takes long to tokenise; what is no such text is refused at once."""
    about = read_about(corpus_folder(data.corpus))
    if about is None or len(about.suffixes) != _LANGUAGES.get(task):
        return False
    files = [about.files[f"{Split.TRAIN}.{suffix}"] for suffix in about.suffixes]
    used = min(1.0, data.train_lines / max(files[0].lines, 1)) if data.train_lines else 1.0
    return used * sum(file.words for file in files) > LARGE
