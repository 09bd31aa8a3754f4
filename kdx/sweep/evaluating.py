"""Makes the evaluations of one completed run in a worker's process: from the kept weights to recorded rows."""

import fcntl
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from kdx.cell_code import code_of_evaluation
from kdx.data.corpus import load_corpus
from kdx.errors import AccessError, DatabaseError, KdxError, StorageError
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.spec import CellSpec, read_plain
from kdx.metrics import METRICS
from kdx.run_files.files import RunFile, content, final_weights
from kdx.store import evaluations, reading
from kdx.store.database import Database
from kdx.store.evaluations import EvaluationResult
from kdx.store.records import DocumentRecord, RunState
from kdx.sweep.messages import SignsOfLife, Work, describe_error
from kdx.training.checkpoint import unpacked
from kdx.training.environment import environment
from kdx.training.evaluation import Evaluator
from kdx.training.stopping import Stopped, StopRequest
from kdx.vocabulary import Split

_PAUSE = 0.2
"""Seconds between two checks whether another process is done."""


def make_evaluations(work: Work, channel: socket.socket, database: Database, stop: StopRequest) -> None:
    """Make the evaluations that a run still lacks; each is recorded as soon as it is made.

    If another supervisor starts a process for the same run, it waits until this one is done and then finds the
    evaluations recorded. An evaluation that fails is recorded with the reason; if the weights are gone, nothing is
    recorded.

    Raises:
        Stopped: the process was asked to stop; evaluations made until then are recorded.
        DatabaseError: the database cannot be written.
    """
    signs = SignsOfLife(channel, work.run_id)
    record = reading.load_run(database, work.run_id)
    weights = final_weights(Path(work.folder).parent, record)
    if record.state is not RunState.COMPLETED:
        return
    spec = CellSpec.model_validate(read_plain(work.spec))
    wanted = [resolve_evaluation(spec, _request(text)) for text in work.evaluations]
    planned = [evaluation for evaluation in wanted if weights or evaluation.metric]
    data = reading.origins_of(database, [work.run_id])[work.run_id].data
    evaluator: Evaluator | None = None
    with _alone_with(Path(work.folder).parent / weights.folder / weights.name if weights else None, stop, signs):
        recorded = evaluations.of_runs(database, [work.run_id]).get(work.run_id, {})
        for evaluation in {each.id: each for each in planned if each.id not in recorded}.values():
            try:
                if evaluation.metric:
                    result = _scored(evaluation, database, work.run_id, data)
                else:
                    assert weights is not None
                    evaluator = evaluator or _evaluator(spec, work, weights, data, stop, signs)
                    result = _computed(evaluator, evaluation, weights)
            except (AccessError, DatabaseError, StorageError):
                raise  # the fault is in the machine, not in this evaluation
            except Exception as error:
                sha256 = weights.sha256 if weights else None
                result = EvaluationResult(evaluation.id, evaluation.settings, sha256, error=describe_error(error))
                signs.note(f"cannot be evaluated ({_described(evaluation)}): {result.error}")
            evaluations.record(database, work.run_id, result)
            signs.alive()


@contextmanager
def _alone_with(weights: Path | None, stop: StopRequest, signs: SignsOfLife) -> Iterator[None]:
    """Hold the lock on a weights file, waiting for another process that holds it; the lock ends with the process.

    Without weights, or on a file system without locks, there is no wait: what is made twice is recorded once.
    """
    with ExitStack() as held:
        with suppress(OSError):
            file = weights and held.enter_context(weights.open("rb"))
            while file and not _locked(file):
                if stop.asked:
                    raise Stopped
                signs.alive()
                time.sleep(_PAUSE)
        yield


def _locked(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _request(text: str) -> EvaluationRequest:
    return EvaluationRequest("", EvaluationSettings.model_validate(json.loads(text)))


def _evaluator(
    spec: CellSpec, work: Work, weights: RunFile, data: str | None, stop: StopRequest, signs: SignsOfLife
) -> Evaluator:
    corpus = _own_corpus(spec, data)
    try:
        state = unpacked(b"".join(content(Path(work.folder).parent, weights)))
    except StorageError as error:
        # The damage concerns this run only.
        raise KdxError(error.problem, place=error.place, hint=error.hint) from error
    return Evaluator(spec, work.seed, state, corpus, stop=stop, alive=signs.alive)


def _computed(evaluator: Evaluator, evaluation: ResolvedEvaluation, weights: RunFile) -> EvaluationResult:
    outcome = evaluator.evaluate(evaluation)
    documents = outcome.documents
    return EvaluationResult(
        settings_id=evaluation.id,
        settings=evaluation.settings,
        weights_sha256=weights.sha256,
        environment=evaluator.environment,
        code_fingerprint=evaluator.code_fingerprint,
        data_fingerprint=outcome.data_fingerprint,
        longest_context=outcome.longest_context,
        definitions=outcome.definitions,
        metrics=outcome.metrics,
        documents=None if documents is None else DocumentRecord(documents.unit, documents.sums),
    )


def _scored(evaluation: ResolvedEvaluation, database: Database, run_id: int, data: str | None) -> EvaluationResult:
    """Score the translations that the run's own test has kept."""
    assert evaluation.metric is not None
    outputs = reading.outputs_of(database, [run_id], "test/translations").get(run_id)
    if outputs is None:
        raise KdxError("the run kept no translations")
    corpus = _own_corpus(evaluation.spec, data)
    metric = METRICS[evaluation.metric]()
    score = float(metric.score(outputs, list(corpus.splits[Split.TEST].references)))
    if not isinstance(definition := metric.definition(), str):
        raise KdxError(f"definition() of {evaluation.metric} gives no text")
    code = code_of_evaluation(evaluation)
    return EvaluationResult(
        settings_id=evaluation.id,
        settings=evaluation.settings,
        weights_sha256=None,
        environment={**environment(evaluation.spec.training), "code": dict(code.modules)},
        code_fingerprint=code.sha256,
        data_fingerprint=corpus.fingerprint,
        definitions={evaluation.metric: definition},
        metrics={evaluation.metric: score},
    )


def _own_corpus(spec: CellSpec, data: str | None) -> Any:
    """Return the text that the run was trained with.

    Raises:
        KdxError: another text has its name now.
    """
    corpus = load_corpus(spec.task, spec.data)
    if corpus.fingerprint != data:
        raise KdxError(f"`{spec.data.corpus}` is not the text that the run was trained with", hint="prepare that text")
    return corpus


def _described(evaluation: ResolvedEvaluation) -> str:
    return ", ".join(f"{name} {value}" for name, value in evaluation.changes.items()) or "as its test"
