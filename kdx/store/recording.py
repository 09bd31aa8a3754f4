"""What is recorded: plans, and what an attempt tells of its run. Each function and method is one transaction."""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, func, insert, literal, select, update

from kdx.errors import KdxError
from kdx.grid.identity import canonical, resolved
from kdx.grid.plan import Plan
from kdx.store.database import Database
from kdx.store.leases import held, progress_of, stalls_after
from kdx.store.records import FINAL, RunState
from kdx.store.schema import (
    LINE,
    TEXT,
    attempt,
    bits_of,
    cell,
    environment,
    identity,
    metric,
    now,
    output,
    run,
    sweep,
    sweep_cell,
    sweep_run,
    value_of,
)

MOST_NAMES = 1000
"""Metrics of one run; what makes up a name for every step or token would fill the disk with its rows."""


def settle(database: Database, place: str) -> None:
    """Records where the database keeps the files of its runs from now on.

    Args:
        place: SHA-256 of what tells one place from any other.
    """
    with database.write() as connection:
        connection.execute(update(identity).values(place=place))


def register(database: Database, plan: Plan, grid: Mapping[str, Any]) -> int:
    """Records a plan under its name; the id of the sweep. Doing it again changes nothing.

    Runs that another sweep already has are shared. What an earlier plan of this name had and this one lacks keeps its
    rows, marked as no longer planned. The number of statements does not depend on the size of the plan.

    Args:
        grid: what concerns no single cell, such as the tables; any JSON.
    """
    cells = [
        {"id": planned.id, "spec": text, "resolved": json.dumps(resolved(text), sort_keys=True)}
        for planned in plan.cells
        for text in [canonical(planned.spec)]
    ]
    runs = [{"cell_id": planned.cell.id, "seed": planned.seed} for planned in plan.runs]
    insert_into = database.backend.insert
    with database.write() as connection:
        named = insert_into(sweep).values(name=plan.name, created=now(), updated=now(), grid=dict(grid))
        named = named.on_conflict_do_update(
            index_elements=["name"], set_={"updated": named.excluded.updated, "grid": named.excluded.grid}
        )
        sweep_id = int(connection.execute(named.returning(sweep.c.id)).scalar_one())
        for table in (sweep_cell, sweep_run):
            connection.execute(update(table).where(table.c.sweep_id == sweep_id).values(planned=False))
        if not cells:
            return sweep_id

        connection.execute(insert_into(cell).on_conflict_do_nothing(), cells)
        has_cell = insert_into(sweep_cell)
        has_cell = has_cell.on_conflict_do_update(
            index_elements=["sweep_id", "cell_id", "ordinal"],
            set_={"labels": has_cell.excluded.labels, "planned": has_cell.excluded.planned},
        )
        connection.execute(
            has_cell,
            [
                {
                    "sweep_id": sweep_id,
                    "cell_id": planned.id,
                    "ordinal": planned.ordinal,
                    "labels": dict(planned.labels),
                    "planned": True,
                }
                for planned in plan.cells
            ],
        )
        if not runs:
            return sweep_id

        fresh = {"generation": 0, "state": RunState.PENDING, "attempt": 0, "progress_step": 0, "stalls": 0}
        connection.execute(insert_into(run).on_conflict_do_nothing(), [planned | fresh for planned in runs])
        has_run = insert_into(sweep_run)
        has_run = has_run.on_conflict_do_update(
            index_elements=["sweep_id", "cell_id", "seed"], set_={"planned": has_run.excluded.planned}
        )
        connection.execute(has_run, [planned | {"sweep_id": sweep_id, "planned": True} for planned in runs])
    return sweep_id


def repeat(database: Database, run_ids: Iterable[int]) -> tuple[int, ...]:
    """Adds a pending generation to each of these runs that is final and has no newer one; the ids of the new runs."""
    newer = run.alias()
    again = select(
        run.c.cell_id,
        run.c.seed,
        run.c.generation + 1,
        literal(RunState.PENDING.value),
        literal(0),
        literal(0),
        literal(0),
    ).where(
        run.c.id.in_(list(run_ids)),
        run.c.state.in_(FINAL),
        ~select(newer.c.id)
        .where(newer.c.cell_id == run.c.cell_id, newer.c.seed == run.c.seed, newer.c.generation > run.c.generation)
        .exists(),
    )
    columns = ["cell_id", "seed", "generation", "state", "attempt", "progress_step", "stalls"]
    with database.write() as connection:
        added = connection.execute(insert(run).from_select(columns, again).returning(run.c.id))
        return tuple(sorted(added.scalars()))


def reset_failed(database: Database, run_ids: Iterable[int]) -> int:
    """Makes those of these runs that failed pending again; how many."""
    with database.write() as connection:
        reset = connection.execute(
            update(run)
            .where(run.c.state == RunState.FAILED, run.c.id.in_(list(run_ids)))
            .values(state=RunState.PENDING, stalls=0, error=None)
        )
        return reset.rowcount


def keep_environment(connection: Connection, database: Database, facts: Mapping[str, Any]) -> str:
    """The id of an environment, which is recorded where it is not known yet."""
    text = json.dumps(facts, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    known = database.backend.insert(environment).values(id=key, environment=json.loads(text))
    connection.execute(known.on_conflict_do_nothing())
    return key


class ComeTo(NamedTuple):
    """How far a run has come, in optimiser steps."""

    rows: int
    checkpoint: int | None
    """Of the newest checkpoint that was recorded; None: none was."""


class RunWriter:
    """The hand of one attempt: each method is one transaction, and raises `Fenced` when the attempt lost the run."""

    def __init__(self, database: Database, run_id: int, owner: str, attempt: int) -> None:
        self.run_id = run_id
        self.owner = owner
        self.attempt = attempt
        self._database = database
        self._names: set[str] = set()
        """Metrics that were recorded, as far as they were looked up."""

    def begin(
        self,
        environment_facts: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int = 0,
        changes: str | None = None,
        data_facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Records with what the run is computed.

        Args:
            environment_facts: library versions, processor, threads and the like; any JSON.
            resumed_step: of the checkpoint that the attempt goes on from; 0: from the beginning.
            changes: what of this is other than it was before; None: nothing.
            data_facts: what the prepared data and the evaluation are; any JSON.
        """
        with self._writing() as connection:
            key = keep_environment(connection, self._database, environment_facts)
            before = select(attempt.c.resumed_step).where(
                attempt.c.run_id == self.run_id, attempt.c.number < self.attempt, attempt.c.resumed_step.is_not(None)
            )
            last = connection.scalar(before.order_by(attempt.c.number.desc()).limit(1))
            further = {"stalls": 0} if last is not None and resumed_step > last else {}
            connection.execute(
                update(run)
                .where(run.c.id == self.run_id)
                .values(
                    environment_id=key,
                    data_fingerprint=data_fingerprint,
                    data_facts=None if data_facts is None else dict(data_facts),
                    code_fingerprint=code_fingerprint,
                    checkpoint_step=resumed_step or None,
                    **further,
                )
            )
            connection.execute(
                update(attempt)
                .where(attempt.c.run_id == self.run_id, attempt.c.number == self.attempt)
                .values(environment_id=key, resumed_step=resumed_step, changes=changes)
            )

    def checkpoint(self, step: int) -> None:
        """Records that the run can go on from `step`, so that a checkpoint that is lost is missed."""
        with self._writing(checkpoint_step=step):
            pass

    @contextmanager
    def holding(self) -> Iterator[ComeTo]:
        """A transaction in which nobody else can claim the run; how far it has come."""
        with self._writing() as connection:
            steps = select(run.c.progress_step, run.c.checkpoint_step).where(run.c.id == self.run_id)
            yield ComeTo(*connection.execute(steps).one())

    def record(self, rows: Sequence[tuple[str, int, float]], progress_step: int) -> None:
        """Records numbers, and that the run has come to `progress_step`.

        A number that was recorded before is overwritten; `metric.writes` counts that, and `metric.differs` the times
        that its bits changed.

        Args:
            rows: (metric such as `valid/bleu`, optimiser step, value).

        Raises:
            TypeError: a value is not one number.
            KdxError: the run has more than `MOST_NAMES` metrics. Either way, none of the rows is recorded.
        """
        patterns = [_pattern(name, step, value) for name, step, value in rows]
        with self._writing(progress_step=progress_of(progress_step)) as connection:
            if not rows:
                return
            self._refuse_too_many(connection, {name for name, _, _ in rows})
            added = self._database.backend.insert(metric)
            changed = case((metric.c.bits != added.excluded.bits, 1), else_=0)
            added = added.on_conflict_do_update(
                index_elements=["run_id", "name", "step"],
                set_={
                    "value": added.excluded.value,
                    "bits": added.excluded.bits,
                    "writes": metric.c.writes + 1,
                    "differs": metric.c.differs + changed,
                },
            )
            connection.execute(
                added,
                [
                    {
                        "run_id": self.run_id,
                        "name": name,
                        "step": step,
                        "value": value_of(bits),
                        "bits": bits,
                        "writes": 1,
                        "differs": 0,
                    }
                    for (name, step, _), bits in zip(rows, patterns, strict=True)
                ],
            )

    def _refuse_too_many(self, connection: Connection, names: set[str]) -> None:
        if names <= self._names:
            return
        recorded = select(metric.c.name).where(metric.c.run_id == self.run_id).distinct()
        self._names |= names | set(connection.scalars(recorded))
        if len(self._names) > MOST_NAMES:
            raise KdxError(
                f"the run records more than {MOST_NAMES} metrics, the last of them `{max(names)}`",
                hint="a metric is a name with a value at each step; keep steps and items out of the name",
            )

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        """Keeps texts that the run produced, such as `test/translations`, in place of any of that name."""
        # JSON, not lines: a text may hold any character, a line break too.
        text = json.dumps(list(lines)).encode()
        kept = {"lines": zlib.compress(text), "count": len(lines), "sha256": hashlib.sha256(text).hexdigest()}
        with self._writing() as connection:
            put = self._database.backend.insert(output).values(run_id=self.run_id, name=name, **kept)
            connection.execute(put.on_conflict_do_update(index_elements=["run_id", "name"], set_=kept))

    def complete(
        self,
        valid_score: float | None,
        valid_step: int | None,
        test_score: float | None,
        definitions: Mapping[str, str],
        last_step: int,
        undertrained: str | None = None,
        weights_sha256: str | None = None,
    ) -> None:
        """Ends the run with its scores; final. A run whose curves have holes fails instead.

        Such holes appear when a run goes on from a checkpoint that is newer than the database, as after taking the
        database back from a copy.

        Args:
            valid_score: best value of the selection metric, at optimiser step `valid_step`.
            test_score: the same metric on the test split, with those weights.
            definitions: metric → its definition or signature.
            undertrained: one line: why it learned too little; None: it did not.
            weights_sha256: of the file with the weights that were tested; None: there is none.
        """
        scores = _scores(valid_score, valid_step, test_score, definitions)
        self._end(RunState.COMPLETED, last_step, undertrained=undertrained, weights_sha256=weights_sha256, **scores)

    def diverge(
        self,
        reason: str,
        last_step: int,
        valid_score: float | None = None,
        valid_step: int | None = None,
        test_score: float | None = None,
        definitions: Mapping[str, str] | None = None,
        weights_sha256: str | None = None,
    ) -> None:
        """Ends the run as one that did not converge, with what scores it has; final."""
        scores = _scores(valid_score, valid_step, test_score, definitions)
        self._end(RunState.DIVERGED, last_step, error=reason[:LINE], weights_sha256=weights_sha256, **scores)

    def prune(
        self,
        reason: str,
        last_step: int,
        valid_score: float | None = None,
        valid_step: int | None = None,
        definitions: Mapping[str, str] | None = None,
        weights_sha256: str | None = None,
    ) -> None:
        """Ends the run as one that was not worth going on with, with its best validation so far; final."""
        scores = _scores(valid_score, valid_step, None, definitions)
        self._end(RunState.PRUNED, last_step, error=reason[:LINE], weights_sha256=weights_sha256, **scores)

    def interrupt(self, last_step: int) -> None:
        """Ends the attempt at a safe point; the run can be resumed."""
        self._end(RunState.INTERRUPTED, last_step)

    def fail(self, error: str, traceback: str, last_step: int) -> None:
        """Ends the run with an exception: one line for lists, and the whole of it."""
        self._end(RunState.FAILED, last_step, traceback=traceback[-TEXT:], error=error[:LINE])

    def _end(self, state: RunState, last_step: int, traceback: str | None = None, **columns: Any) -> None:
        columns |= {"stalls": stalls_after(last_step, without_progress=0), "progress_step": progress_of(last_step)}
        with self._writing() as connection:
            if state is RunState.COMPLETED and (hole := _hole(connection, self.run_id, last_step)):
                state, columns["error"] = RunState.FAILED, hole
            connection.execute(update(run).where(run.c.id == self.run_id).values(columns | {"state": state}))
            connection.execute(
                update(attempt)
                .where(attempt.c.run_id == self.run_id, attempt.c.number == self.attempt)
                .values(ended=now(), outcome=state, last_step=last_step, traceback=traceback)
            )

    def _writing(self, **columns: Any) -> AbstractContextManager[Connection]:
        return held(self._database, self.run_id, self.owner, self.attempt, **columns)


def _hole(connection: Connection, run_id: int, last_step: int) -> str | None:
    """What is wrong with the rows of a run that has come to its last step; None: they are all there.

    Judged by what every run records, its losses. A run that has none of a loss has not recorded it at all.
    """
    mine = metric.c.run_id == run_id
    above = connection.scalar(select(func.count()).where(mine, metric.c.step > last_step))
    if above:
        return f"incomplete metrics: {above} rows lie above step {last_step}, the last"
    spec = connection.scalar(select(cell.c.spec).join(run, run.c.cell_id == cell.c.id).where(run.c.id == run_id))
    training = json.loads(str(spec))["training"]
    for name, every, also in (
        ("train/loss", training["record_every"], 1),
        ("valid/loss", training["validate_every"], last_step),
    ):
        if every is None:  # once a pass over the text, whose length is not known here
            continue
        scheduled = {*range(every, last_step + 1, every), also}
        recorded = set(connection.scalars(select(metric.c.step).where(mine, metric.c.name == name)))
        if recorded and (missing := scheduled - recorded):
            return f"incomplete metrics: {len(missing)} of {len(scheduled)} rows of {name} are missing"
    return None


def _pattern(name: str, step: int, value: float) -> int:
    """The bits of a value.

    Raises:
        TypeError: it is not one number.
    """
    try:
        return bits_of(value)
    except (struct.error, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise TypeError(f"{name} at step {step} is not one number: {error}") from error


def _scores(
    valid_score: float | None,
    valid_step: int | None,
    test_score: float | None,
    definitions: Mapping[str, str] | None,
) -> dict[str, Any]:
    return {
        "valid_score": valid_score,
        "valid_bits": None if valid_score is None else bits_of(valid_score),
        "valid_step": valid_step,
        "test_score": test_score,
        "test_bits": None if test_score is None else bits_of(test_score),
        "definitions": None if definitions is None else dict(definitions),
    }
