"""Checks, before anything starts, that the corpora of a plan exist and fit its cells, and caches them."""

from collections.abc import Iterator
from contextlib import contextmanager

from kdx.data.corpus import load_corpus
from kdx.data.evaluated import evaluated_corpus
from kdx.data.find_text import find_text
from kdx.data.prepared import corpus_folder, read_about
from kdx.data.reading import check_batch, check_reading
from kdx.errors import KdxError, by_place
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.messages import in_file
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.sections import Data
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.tasks.data_kinds import text_kind
from kdx.vocabulary import Split

LARGE = 5_000_000
"""Number of words of training text, in both languages together, above which tokenising takes more than ten seconds."""


def prepare_data(plan: Plan, *, large: bool = True) -> list[str]:
    """Load every corpus of the plan once, before workers need it, and return notes for the user.

    Args:
        large: whether to tokenise large texts and to generate custom corpora, which runs their code; if not, only the
            existence and kind of a text are checked.

    Raises:
        Faults: every corpus that is missing or does not fit its task, with its place in the grid.
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
                find_text(data)
                notes[f"{data.corpus} is large: its text is checked by kdx sweep, not here"] = None
                continue
            if not large and data.corpus in DIFFICULTIES.outside:
                continue
            corpus = load_corpus(task, data)
            for cell in cells:
                with _collected(cell, faults):
                    check_batch(cell.spec, corpus)
                    check_reading(cell.spec, corpus)
                for evaluation in plan.evaluations_of(cell.id):
                    with _collected(evaluation, faults):
                        evaluated_corpus(cell.spec, evaluation, corpus)
            notes |= dict.fromkeys(corpus.notes)
    if faults:
        raise by_place(faults.values())
    return list(notes)


@contextmanager
def _collected(planned: PlannedCell | ResolvedEvaluation, faults: dict[str, KdxError]) -> Iterator[None]:
    """Collect faults of the grid by their text, to report all at once; other errors are raised."""
    try:
        yield
    except KdxError as fault:
        if fault.exit_code != KdxError.exit_code:
            raise
        located = in_file(fault, planned) if isinstance(planned, PlannedCell) else planned.request.in_file(fault)
        faults.setdefault(str(located), located)


def _is_large(task: str, data: Data) -> bool:
    """Return whether a text takes long to tokenise; one of another kind than the task's is refused, so it does not."""
    about = read_about(corpus_folder(data.corpus))
    if about is None or text_kind(about.suffixes) != TASKS.definition(task).data:
        return False
    files = [about.files[f"{Split.TRAIN}.{suffix}"] for suffix in about.suffixes]
    used = min(1.0, data.train_lines / max(files[0].lines, 1)) if data.train_lines else 1.0
    return used * sum(file.words for file in files) > LARGE
