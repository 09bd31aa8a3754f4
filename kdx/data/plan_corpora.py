"""Whether the corpora of a plan are there and fit its cells, told before anything starts."""

from collections.abc import Iterator
from contextlib import contextmanager

from kdx.data.corpus import load_corpus
from kdx.data.evaluated import evaluated_corpus
from kdx.data.find_text import find_text
from kdx.data.prepared import corpus_folder, read_about
from kdx.data.reading import check_reading
from kdx.data.storage import data_home
from kdx.errors import KdxError, by_place
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.faults import in_file
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.sections import Data
from kdx.tasks import TASKS, text_kind
from kdx.vocabulary import Split

LARGE = 5_000_000
"""Words of training text, of both languages, that take more than ten seconds to become tokens."""


def prepare_data(plan: Plan, *, large: bool = True) -> list[str]:
    """Makes every corpus of the plan ready, once, before workers ask for it; what is to be said of them.

    Args:
        large: whether large texts are tokenised too. If not, whether they are there and of the right kind is all that
            is looked at.

    Raises:
        Faults: all that is missing or does not fit its task, each where the grid has it.
        StorageError: the cache cannot be written.
    """
    users: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in plan.cells:
        users.setdefault((cell.spec.task, cell.spec.data.model_dump_json()), []).append(cell)
    notes: dict[str, None] = {}
    faults: dict[str, KdxError] = {}
    for cells in users.values():
        task, data = cells[0].spec.task, cells[0].spec.data
        with _collected(cells[0], faults):
            if not large and _is_large(task, data):
                find_text(data, data_home())
                notes[f"{data.corpus} is large: kdx sweep looks into its text, which is not done here"] = None
                continue
            corpus = load_corpus(task, data)
            if corpus.uncached:
                notes[corpus.uncached] = None
            for cell in cells:
                with _collected(cell, faults):
                    check_reading(cell.spec, corpus)
                for one in plan.evaluations_of(cell.id):
                    with _collected(one, faults):
                        evaluated_corpus(cell.spec, one, corpus)
            notes |= dict.fromkeys(corpus.notes)
    if faults:
        raise by_place(faults.values())
    return list(notes)


@contextmanager
def _collected(asked: PlannedCell | ResolvedEvaluation, faults: dict[str, KdxError]) -> Iterator[None]:
    """Keeps a fault of what the grid asks for, by its text, for all to be told at once; what is none is raised."""
    try:
        yield
    except KdxError as fault:
        if fault.exit_code != KdxError.exit_code:
            raise
        told = in_file(fault, asked) if isinstance(asked, PlannedCell) else asked.asked.in_file(fault)
        faults.setdefault(str(told), told)


def _is_large(task: str, data: Data) -> bool:
    """Whether it is a text for this task that takes long to tokenise; what is no such text is refused at once."""
    about = read_about(corpus_folder(data.corpus))
    if about is None or text_kind(about.suffixes) != TASKS[task].data:
        return False
    files = [about.files[f"{Split.TRAIN}.{suffix}"] for suffix in about.suffixes]
    used = min(1.0, data.train_lines / max(files[0].lines, 1)) if data.train_lines else 1.0
    return used * sum(file.words for file in files) > LARGE
