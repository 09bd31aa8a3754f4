"""Makes the evaluations of one completed run in the process of its worker: from the kept weights to recorded rows."""

import json
import socket
from pathlib import Path

from kdx.data.corpus import load_corpus
from kdx.errors import AccessError, DatabaseError, KdxError, StorageError
from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.spec import CellSpec
from kdx.run_files.files import RunFile, content, final_weights
from kdx.store import evaluations, reading
from kdx.store.database import Database
from kdx.store.evaluations import Made
from kdx.store.records import RunState
from kdx.sweep.messages import SignsOfLife, Work, describe_error
from kdx.training.checkpoint import unpacked
from kdx.training.evaluation import Evaluator
from kdx.training.stopping import StopRequest


def make_evaluations(work: Work, channel: socket.socket, database: Database, stop: StopRequest) -> None:
    """Make the evaluations that are asked for and are not there; each is recorded as soon as it is made.

    Another process may make the same evaluations at the same time, which does no harm. An evaluation that cannot be
    made is recorded with the reason; where the weights are gone, nothing is recorded.

    Raises:
        Stopped: it was asked to stop; what was made until then is recorded.
        DatabaseError: the database cannot be written.
    """
    signs = SignsOfLife(channel, work.run_id)
    record, _, origin = reading.load_one(database, work.run_id)
    weights = final_weights(Path(work.folder).parent, record)
    if record.state is not RunState.COMPLETED or weights is None:
        return
    spec = CellSpec.model_validate(json.loads(work.spec))
    asked = [resolve_evaluation(spec, _asked(text)) for text in work.evaluations]
    evaluator: Evaluator | None = None
    for one in {each.id: each for each in asked}.values():
        if one.id not in evaluations.of_runs(database, [work.run_id]).get(work.run_id, {}):
            try:
                evaluator = evaluator or _evaluator(spec, work, weights, origin.data, stop, signs)
                made = _made(evaluator, one, weights)
            except (AccessError, DatabaseError, StorageError):
                raise  # of the machine, not of this evaluation
            except Exception as error:
                made = Made(one.id, one.settings, weights.sha256, error=describe_error(error))
                signs.note(f"cannot be evaluated ({_described(one)}): {made.error}")
            evaluations.record(database, work.run_id, made)
        signs.alive()


def _asked(text: str) -> AskedEvaluation:
    return AskedEvaluation("", EvaluationSettings.model_validate(json.loads(text)))


def _evaluator(
    spec: CellSpec, work: Work, weights: RunFile, data: str | None, stop: StopRequest, signs: SignsOfLife
) -> Evaluator:
    corpus = load_corpus(spec.task, spec.data)
    if corpus.fingerprint != data:
        raise KdxError(f"`{spec.data.corpus}` is not the text that the run was trained with", hint="prepare that text")
    try:
        state = unpacked(b"".join(content(Path(work.folder).parent, weights)))
    except StorageError as error:
        # It is of this run alone.
        raise KdxError(error.problem, place=error.place, hint=error.hint) from error
    return Evaluator(spec, work.seed, state, corpus, stop=stop, alive=signs.alive)


def _made(evaluator: Evaluator, one: ResolvedEvaluation, weights: RunFile) -> Made:
    outcome = evaluator.evaluate(one)
    return Made(
        settings_id=one.id,
        settings=one.settings,
        weights_sha256=weights.sha256,
        environment=evaluator.environment,
        code_fingerprint=evaluator.code_fingerprint,
        data_fingerprint=outcome.data_fingerprint,
        longest_context=outcome.longest_context,
        definitions=outcome.definitions,
        metrics=outcome.metrics,
    )


def _described(one: ResolvedEvaluation) -> str:
    return ", ".join(f"{name} {value}" for name, value in one.changes.items()) or "as its test"
