"""Loads a run of the database as a model in Python."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.components.find import bring, folders_of
from kdx.data.corpus import Corpus, load_corpus
from kdx.data.vocabulary import BEGIN, END, Vocabulary
from kdx.errors import KdxError
from kdx.grid.spec import CellSpec
from kdx.run_files.files import content, files_beside, final_weights, refuse_absent
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.store.database import open_database
from kdx.store.details import run_details
from kdx.store.records import RunRecord, RunState
from kdx.training.trained import Lines, Trained, model_of

MOST_TOKENS = 48
"""Most tokens of a line whose attention is drawn."""


@dataclass(frozen=True, repr=False)
class LoadedRun(Trained):
    """A trained model, with the run that trained it."""

    record: RunRecord

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, run {self.record.id}, seed {self.record.seed}>"

    def perplexity(self, *texts: Lines) -> float:
        """Return what `Trained.perplexity` does.

        Raises:
            KdxError: also if a text has no line.
        """
        read = [text if isinstance(text, str) else list(text) for text in texts]
        if [] in read:
            raise KdxError("a text without a line has no perplexity", hint="give one line, or a list of lines")
        return super().perplexity(*read)

    def attention_maps(self, line: str) -> Iterator[tuple[str, list[str], list[str], Any]]:
        """The weights of every attention while the model reads a line, or translates it.

        Yields:
            Name, such as `decoder.layers.0.cross_attention`; the tokens that attend; those that they attend to; and
            the weights (H, Tq, Tk).

        Raises:
            KdxError: as `translate`; or the line has more than `MOST_TOKENS`.
        """
        task = self._module
        if not task.texts:
            raise KdxError(f"task {self.spec.task} reads no text", hint="maps are of runs that read a line")
        lines = (line, *(self.translate(line) if len(task.texts) > 1 else ()))
        inputs = (ids[0].tolist() for name, ids in task.inputs(*lines).items() if not name.endswith("padding"))
        read = zip(map(task.vocabulary, task.texts), inputs, strict=True)
        texts = [[_piece(vocabulary, id) for id in ids] for vocabulary, ids in read]
        if (longest := max(map(len, texts))) > MOST_TOKENS:
            raise KdxError(f"the line has {longest} tokens", hint=f"a map has up to {MOST_TOKENS}; take a shorter line")
        for name, weights in self.attention(*lines).items():
            encodes, crosses = name.startswith("encoder."), name.endswith(".cross_attention")
            queries, keys = texts[0 if encodes else -1], texts[0 if encodes or crosses else -1]
            yield name, queries, keys, weights[0]


def _piece(vocabulary: Vocabulary | None, id: int) -> str:
    return {BEGIN: "(begin)", END: "(end)"}.get(id) or (vocabulary.decode([id]) if vocabulary else str(id))


def load_run(
    database: str | Path, run: int, *, home: str | Path | None = None, components: str | Path | None = None
) -> LoadedRun:
    """Return the model of a finished run with its tested weights.

    Args:
        run: id of the run, which `kdx trace` and `kdx query` show.
        home: folder of prepared corpora; None for the user's.
        components: folder with the files of the cell's custom components, whose code is run; None for the current one.

    Raises:
        KdxError: the run does not exist or has no weights, its weights do not fit its model, or its cell has names that
            this kdx does not know; or a custom component is not in `components`, or has another source.
        DatabaseError: see `kdx.store.database.open_database`; or the files next to it belong to another database.
        StorageError: the weights cannot be read or are damaged.
    """
    home, components = (None if folder is None else Path(folder) for folder in (home, components))
    with open_database(database, write=False) as opened:
        details = run_details(opened, run)
        refuse_stranger(opened)
    record, files = details.record, files_beside(opened.location)
    weights = final_weights(files, record)
    if weights is None:
        if record.state is RunState.COMPLETED:
            refuse_absent(files)
        raise KdxError(
            f"run {run}, which is {record.state}, has no weights that were tested",
            place=str(files),
            hint=f"a completed run keeps them unless kdx gc removes them; kdx retry {run} trains it again",
        )
    cell = details.cell.spec
    bring(cell.missing_components, folders_of("", components), f"run {run}")
    if (spec := cell.known) is None:
        raise KdxError(
            f"the cell of run {run} has what this kdx does not know: {', '.join(cell.unknown)}",
            place=opened.name,
            hint="load it with the kdx that trained it",
        )
    model = model_of(spec, b"".join(content(files, weights)), files / weights.folder / weights.name)
    return LoadedRun(spec, model, _corpus(spec, details.provenance.data, home), record)


def _corpus(spec: CellSpec, fingerprint: str | None, home: Path | None) -> Corpus | None:
    try:
        corpus = load_corpus(spec.task, spec.data, home)
    except KdxError:
        return None
    return corpus if corpus.fingerprint == fingerprint else None
