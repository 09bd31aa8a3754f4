"""Records plans, and the progress and results of attempts. Each function and method is one transaction.

Those of an attempt do no harm when they are done twice: rows are overwritten with what they hold, and whoever finds
that the attempt has ended as it was to end is content. So they are done again when a connection is lost.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Table, case, delete, insert, literal, select, update

from kdx.components.registry import components_of
from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan
from kdx.grid.tuning import Search
from kdx.store.backend import insert_rows
from kdx.store.claims import Fenced, held, progress_of, stalls_after
from kdx.store.components import keep
from kdx.store.database import Database
from kdx.store.records import FINAL, RunState, TrialRecord
from kdx.store.schema import (
    LINE,
    NEW_RUN,
    TEXT,
    among,
    attempt,
    bits_of,
    cell,
    environment,
    identity,
    metric,
    now,
    output,
    plan_cell,
    run,
    search,
    sweep,
    sweep_cell,
    sweep_run,
    sweep_search,
    test_document,
    trial,
    value_of,
)
from kdx.store.schema import definitions as definitions_table
from kdx.store.schema import plan as plan_table


def settle(database: Database, place: str) -> None:
    """Record the place where the database keeps the files of its runs from now on.

    Args:
        place: SHA-256 that identifies the place.
    """
    with database.write() as connection:
        connection.execute(update(identity).values(place=place))


def register(database: Database, plan: Plan) -> int:
    """Record a plan under its name and return the id of the sweep. Repeating it changes nothing.

    Runs that another sweep already has are shared. Cells and runs of an earlier plan of this name that this one lacks
    keep their rows and are marked as no longer planned. The number of statements does not depend on the plan's size.
    """
    with database.write() as connection:
        return _register(connection, database, plan)


def register_winners(database: Database, plan: Plan) -> bool:
    """Record a plan with winners; return False and record nothing if its sweep is gone or follows another plan by now.

    Args:
        plan: one that was recorded, in which winners have taken the places of searches.
    """
    with database.write() as connection:
        if follows := _follows(connection, plan):
            _register(connection, database, plan)
    return follows


def _follows(connection: Connection, plan: Plan) -> bool:
    """Return whether the recorded plan of a sweep is this one, whichever of its winners are in it."""
    recorded = connection.execute(select(sweep.c.id, sweep.c.grid).where(sweep.c.name == plan.name)).one_or_none()
    if recorded is None or not is_same_grid(recorded.grid, plan.grid):
        return False
    columns = (sweep_search.c.ordinal, sweep_search.c.search_id, sweep_search.c.trials)
    searches = connection.execute(select(*columns).where(sweep_search.c.sweep_id == recorded.id))
    planned = sweep_cell.c.planned & (sweep_cell.c.sweep_id == recorded.id)
    cells = connection.execute(select(sweep_cell.c.ordinal, sweep_cell.c.cell_id).where(planned))
    wanted = {(cell.ordinal, cell.search.id, cell.search.tuning.trials) for cell in plan.cells if cell.search}
    # Another trial of a search may be the best by now: an import can bring a run that failed here.
    won = {cell.ordinal for cell in plan.cells if cell.won}
    others = {(cell.ordinal, cell.id) for cell in plan.trained if not cell.won}
    return set(map(tuple, searches)) == wanted and {tuple(row) for row in cells if row.ordinal not in won} == others


def _register(connection: Connection, database: Database, plan: Plan) -> int:
    cells = [{"id": planned.id, "spec": planned.spec.text} for planned in plan.trained]
    runs = [{"cell_id": planned.cell.id, "seed": planned.seed} for planned in plan.runs]
    named = database.upsert(sweep, ["name"], ["updated", "grid"])
    named = named.values(name=plan.name, created=now(), updated=now(), grid=dict(plan.grid)).returning(sweep.c.id)
    new_cell = database.insert(cell)
    # A custom component is shown under the path that its file had when it was last planned.
    moved = {"spec": new_cell.excluded.spec}
    new_cell = new_cell.on_conflict_do_update(
        index_elements=["id"], set_=moved, where=cell.c.spec != new_cell.excluded.spec
    )
    planned_cell = database.upsert(sweep_cell, ["sweep_id", "cell_id", "ordinal"], ["labels", "planned"])
    planned_run = database.upsert(sweep_run, ["sweep_id", "cell_id", "seed"], ["planned"])
    sweep_id = int(connection.execute(named).scalar_one())
    for table in (sweep_cell, sweep_run):
        connection.execute(update(table).where(table.c.sweep_id == sweep_id).values(planned=False))
    insert_rows(connection, new_cell, cells)
    _keep_plan(connection, sweep_id, plan)
    _ask_for_searches(connection, database, sweep_id, plan)
    keep(connection, database, components_of(plan.components))
    labels = [
        {"cell_id": planned.id, "ordinal": planned.ordinal, "labels": dict(planned.labels)} for planned in plan.trained
    ]
    insert_rows(connection, planned_cell.values(sweep_id=sweep_id, planned=True), labels)
    insert_rows(connection, database.insert(run).on_conflict_do_nothing(), [key | NEW_RUN for key in runs])
    insert_rows(connection, planned_run.values(sweep_id=sweep_id, planned=True), runs)
    return sweep_id


def is_same_grid(recorded: Mapping[str, Any], grid: Mapping[str, Any]) -> bool:
    """Return whether a recorded grid is this one, whatever command planned it."""
    return {**recorded, "command": ""} == {**json.loads(json.dumps(grid)), "command": ""}


def _keep_plan(connection: Connection, sweep_id: int, plan: Plan) -> None:
    """Add a plan to the history of a sweep, unless the sweep follows it already. Its cells are recorded before."""
    newest = connection.execute(
        select(plan_table.c.id, plan_table.c.grid, plan_table.c.sources)
        .where(plan_table.c.sweep_id == sweep_id)
        .order_by(plan_table.c.id.desc())
        .limit(1)
    ).one_or_none()
    cells, sources = {trained.id for trained in plan.trained}, dict(plan.sources)
    # Another command may come to the same plan.
    if newest and is_same_grid(newest.grid, plan.grid):
        # A plan that was read from the database, as kdx resume does, has no files.
        sources = sources or newest.sources
        known = connection.scalars(select(plan_cell.c.cell_id).where(plan_cell.c.plan_id == newest.id))
        if sources == newest.sources and cells == set(known):
            return
    added = insert(plan_table).values(sweep_id=sweep_id, made=now(), grid=dict(plan.grid), sources=sources)
    plan_id = connection.execute(added.returning(plan_table.c.id)).scalar_one()
    insert_rows(connection, insert(plan_cell).values(plan_id=plan_id), [{"cell_id": key} for key in sorted(cells)])


def _ask_for_searches(connection: Connection, database: Database, sweep_id: int, plan: Plan) -> None:
    """Record which searches a plan asks for, in place of those that the sweep asked for before."""
    connection.execute(delete(sweep_search).where(sweep_search.c.sweep_id == sweep_id))
    planned = [(cell, cell.search) for cell in plan.cells if cell.search is not None]
    plain = {wanted.id: wanted.plain for _, wanted in planned}
    insert_rows(
        connection,
        database.insert(search).values(made=now()).on_conflict_do_nothing(),
        [{"id": search_id, "search": text} for search_id, text in plain.items()],
    )
    insert_rows(
        connection,
        insert(sweep_search).values(sweep_id=sweep_id),
        [
            {
                "ordinal": cell.ordinal,
                "search_id": wanted.id,
                "labels": dict(cell.labels),
                "trials": wanted.tuning.trials,
            }
            for cell, wanted in planned
        ],
    )


def add_trials(database: Database, drawn: Iterable[tuple[Search, Sequence[TrialRecord]]]) -> None:
    """Record trials, and their runs as pending. A trial that is there stays as it is."""
    specs, rows, runs = {}, [], []
    for wanted, trials in drawn:
        for record in trials:
            row = {"number": record.number, "parameters": dict(record.parameters), "cell_id": None}
            row |= {"search_id": wanted.id, "attributes": dict(record.attributes)}
            rows.append(row)
            try:
                spec = wanted.cell(record.parameters)
            except ValidationError:  # such parameters do not go together
                continue
            row["cell_id"] = key = cell_id(spec)
            specs[key] = spec
            runs += [{"cell_id": key, "seed": seed, "search_id": wanted.id, **NEW_RUN} for seed in wanted.tuning.seeds]
    with database.write() as connection:
        cells = [{"id": key, "spec": spec.text} for key, spec in specs.items()]
        insert_rows(connection, database.insert(cell).on_conflict_do_nothing(), cells)
        hashes = {word: sha256 for spec in specs.values() for word, sha256 in spec.components.items()}
        keep(connection, database, components_of(hashes))
        insert_rows(connection, database.insert(run).on_conflict_do_nothing(), runs)
        insert_rows(connection, database.insert(trial).on_conflict_do_nothing(), rows)


def prune_pending(database: Database, run_ids: Collection[int], reason: str) -> None:
    """End those of these runs that never started: the runs of their trial before them were enough."""
    with database.write() as connection:
        connection.execute(
            update(run)
            .where(among(run.c.id, run_ids), run.c.state == RunState.PENDING)
            .values(state=RunState.PRUNED, error=reason[:LINE])
        )


def repeat(database: Database, run_ids: Iterable[int]) -> tuple[int, ...]:
    """Add a pending generation to each of these runs that is final and the newest; return the ids of the new runs.

    A run of a trial gets none: its search has been drawn by its score.
    """
    newer = run.alias()
    values = {"cell_id": run.c.cell_id, "seed": run.c.seed, **NEW_RUN, "generation": run.c.generation + 1}
    again = select(*(value if isinstance(value, ColumnElement) else literal(value) for value in values.values())).where(
        among(run.c.id, run_ids),
        run.c.state.in_(FINAL),
        run.c.search_id.is_(None),
        ~select(newer.c.id)
        .where(newer.c.cell_id == run.c.cell_id, newer.c.seed == run.c.seed, newer.c.generation > run.c.generation)
        .exists(),
    )
    with database.write() as connection:
        added = connection.execute(insert(run).from_select(list(values), again).returning(run.c.id))
        return tuple(sorted(added.scalars()))


def reset(database: Database, run_ids: Iterable[int], states: Collection[RunState]) -> int:
    """Make those of these runs that are in one of these states, none of them final, pending again; their number."""
    with database.write() as connection:
        reset = connection.execute(
            update(run)
            .where(run.c.state.in_(states), among(run.c.id, run_ids))
            .values(state=RunState.PENDING, stalls=0, error=None)
        )
        return reset.rowcount


def keep_once(connection: Connection, database: Database, table: Table, facts: Mapping[str, Any] | None) -> str | None:
    """Record an environment, or definitions of metrics, once for all runs that have the same, and return its id.

    Args:
        table: of environments or of definitions; the column of the facts has its name.
        facts: None for none, which has no id.
    """
    if facts is None:
        return None
    key, ordered = facts_id(facts), json.loads(json.dumps(facts, sort_keys=True))
    known = database.insert(table).values({"id": key, table.name: ordered})
    connection.execute(known.on_conflict_do_nothing())
    return key


def facts_id(facts: Mapping[str, Any]) -> str:
    """128 bits of the SHA-256 of the JSON of an environment or of definitions, as 32 hexadecimal digits."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


class RunWriter:
    """Writes for one attempt.

    Each method is one transaction, unless `together` calls several, and raises `Fenced` when the attempt lost the run.
    """

    def __init__(
        self,
        database: Database,
        run_id: int,
        owner: str,
        attempt: int,
        peak_memory: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Take what measures the most bytes that this process has held, which is recorded when the attempt ends."""
        self.run_id = run_id
        self.owner = owner
        self.attempt = attempt
        self.database = database
        self._peak_memory = peak_memory
        self._open: Connection | None = None
        """Connection of the transaction that `together` has begun."""
        self._end_state: RunState | None = None
        """The state in which the run ends, once that is to be written."""

    def together(self, writes: Sequence[Callable[[], None]]) -> None:
        """Do several writes, calls of other methods, in one transaction; the end of the run, if any, comes last."""

        def once() -> None:
            with held(self.database, self.run_id, self.owner, self.attempt) as self._open:
                try:
                    for write in writes:
                        write()
                finally:
                    self._open = None

        def once_again() -> None:
            try:
                once()
            except Fenced:
                # The first try may stand, though its connection was lost.
                if self._end_state is None or self._outcome() is not self._end_state:
                    raise

        self.database.persist(once, again=once_again)

    def begin(
        self,
        environment_facts: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int = 0,
        changes: str | None = None,
        data_facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Record the environment, data and code with which the run is computed.

        Args:
            environment_facts: library versions, processor, threads and the like; any JSON.
            resumed_step: step of the checkpoint that the attempt resumes from; 0 for the beginning.
            changes: what differs from the attempt before; None for nothing.
            data_facts: facts on the prepared data and the evaluation; any JSON.
        """

        def write(connection: Connection) -> None:
            key = keep_once(connection, self.database, environment, environment_facts)
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

        self._write(write)

    def take_over(self, run_id: int, step: int) -> None:
        """Make the rows of another run up to a step, without its test, those of this one, in place of its own."""
        of_other = select(
            literal(self.run_id), metric.c.name, metric.c.step, metric.c.value, metric.c.bits, literal(1), literal(0)
        ).where(metric.c.run_id == run_id, metric.c.step <= step, ~metric.c.name.startswith("test/"))
        names = ["run_id", "name", "step", "value", "bits", "writes", "differs"]

        def write(connection: Connection) -> None:
            connection.execute(delete(metric).where(metric.c.run_id == self.run_id))
            connection.execute(insert(metric).from_select(names, of_other))

        self._write(write, progress_step=progress_of(step))

    def checkpoint(self, step: int) -> None:
        """Record that the run can be resumed from `step`, so that a lost checkpoint is noticed."""
        self._write(lambda connection: None, checkpoint_step=step)

    @contextmanager
    def holding(self) -> Iterator[tuple[int, int | None]]:
        """A transaction in which nobody else can claim the run.

        It gives the highest step of its rows, and the step of the newest recorded checkpoint, None if there is none.

        Whoever holds it so may have to do all of it again, see `kdx.store.backend.Database.persist`.
        """
        with held(self.database, self.run_id, self.owner, self.attempt) as connection:
            steps = select(run.c.progress_step, run.c.checkpoint_step).where(run.c.id == self.run_id)
            progress, checkpoint = connection.execute(steps).one()
            yield progress, checkpoint

    def record(self, rows: Sequence[tuple[str, int, float]], progress_step: int) -> None:
        """Record numbers, and the progress of the run up to `progress_step`.

        A number that was recorded before is overwritten; `metric.writes` counts the writes, and `metric.differs` those
        that changed its bits.

        Args:
            rows: (metric such as `valid/bleu`, optimiser step, value).

        Raises:
            TypeError: a value is not one number; none of the rows is recorded.
        """
        recorded = [
            {"run_id": self.run_id, "name": name, "step": step, "value": value_of(bits), "bits": bits}
            for name, step, value in rows
            for bits in [_pattern(name, step, value)]
        ]
        added = self.database.insert(metric).values(writes=1, differs=0)
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
        self._write(
            lambda connection: insert_rows(connection, added, recorded), progress_step=progress_of(progress_step)
        )

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        """Record texts that the run produced, such as `test/translations`, and replace any of that name."""
        # JSON instead of lines, since a text may hold any character, line breaks included.
        text = json.dumps(list(lines)).encode()
        kept = {"lines": zlib.compress(text), "count": len(lines), "sha256": hashlib.sha256(text).hexdigest()}
        self._replace(output, {"run_id": self.run_id, "name": name}, kept)

    def documents(self, unit: str, sums: Mapping[str, Sequence[float]]) -> None:
        """Record what the test measured by document, and replace what an earlier attempt recorded.

        Args:
            unit: what a document is, such as `article`.
            sums: quantity → its sum in each document.
        """
        self._replace(test_document, {"run_id": self.run_id}, {"unit": unit, "sums": dict(sums)})

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
        """End the run with its scores, in a final state.

        Args:
            valid_score: best value of the selection metric, at optimiser step `valid_step`.
            test_score: the same metric on the test split, with those weights.
            definitions: metric → its definition or signature.
            undertrained: one line on why the model learned too little; None if it learned enough.
            weights_sha256: hash of the file with the tested weights; None if there is no file.
        """
        known = _scores(valid_score, valid_step, test_score) | {"weights_sha256": weights_sha256}
        self._end(RunState.COMPLETED, last_step, definitions=definitions, undertrained=undertrained, **known)

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
        """End the run as diverged, with the scores that it has, in a final state."""
        known = _scores(valid_score, valid_step, test_score) | {"weights_sha256": weights_sha256}
        self._end(RunState.DIVERGED, last_step, error=reason, definitions=definitions, **known)

    def prune(
        self,
        reason: str,
        last_step: int,
        valid_score: float | None = None,
        valid_step: int | None = None,
        definitions: Mapping[str, str] | None = None,
        weights_sha256: str | None = None,
    ) -> None:
        """End the run as pruned, with its best validation so far, in a final state."""
        known = _scores(valid_score, valid_step, None) | {"weights_sha256": weights_sha256}
        self._end(RunState.PRUNED, last_step, error=reason, definitions=definitions, **known)

    def interrupt(
        self, last_step: int, refused: str | None = None, *, error: str | None = None, traceback: str | None = None
    ) -> None:
        """End the attempt at a safe point; the run can be resumed.

        Args:
            refused: what differs from the conditions of its checkpoint, if the attempt did not resume for that reason.
            error: one line on an exception that need not come again, such as for lack of memory beside other runs.
            traceback: the whole text of that.
        """
        self._end(RunState.INTERRUPTED, last_step, traceback=traceback, changes=refused, error=error)

    def fail(self, error: str, traceback: str, last_step: int) -> None:
        """End the run with an exception: `error` is one line for lists, `traceback` the whole text."""
        self._end(RunState.FAILED, last_step, traceback=traceback, error=error)

    def _end(
        self,
        state: RunState,
        last_step: int,
        *,
        error: str | None = None,
        traceback: str | None = None,
        changes: str | None = None,
        definitions: Mapping[str, str] | None = None,
        **columns: Any,
    ) -> None:
        """End the attempt, and leave the run in a state, with these columns of its row."""
        columns |= {"stalls": stalls_after(last_step, without_progress=0), "progress_step": progress_of(last_step)}
        columns["error"] = error and storable(error)[:LINE]
        of_attempt: dict[str, Any] = {"traceback": traceback and storable(traceback)[-TEXT:]}
        if changes is not None:
            of_attempt["changes"] = changes

        def write(connection: Connection) -> None:
            meanings = keep_once(connection, self.database, definitions_table, definitions)
            ended = columns | {"state": state, "definitions_id": meanings}
            connection.execute(update(run).where(run.c.id == self.run_id).values(ended))
            connection.execute(
                update(attempt)
                .where(attempt.c.run_id == self.run_id, attempt.c.number == self.attempt)
                .values(ended=now(), outcome=state, last_step=last_step, peak_memory=self._peak_memory(), **of_attempt)
            )

        self._end_state = state
        if self._open is None:
            self.together([partial(self._write, write)])
        else:
            self._write(write)

    def _outcome(self) -> RunState | None:
        mine = (attempt.c.run_id == self.run_id) & (attempt.c.number == self.attempt) & (attempt.c.owner == self.owner)
        with self.database.read() as connection:
            return connection.scalar(select(attempt.c.outcome).where(mine))

    def _replace(self, table: Table, key: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        """Record a row of a table in place of any with its key."""
        row = self.database.upsert(table, list(key), kept).values(**key, **kept)
        self._write(lambda connection: connection.execute(row))

    def _write(self, write: Callable[[Connection], object], **columns: Any) -> None:
        """Write in a transaction of the attempt, which is done again when its connection is lost."""

        def into(connection: Connection) -> None:
            if columns:
                connection.execute(update(run).where(run.c.id == self.run_id).values(columns))
            write(connection)

        def once() -> None:
            with held(self.database, self.run_id, self.owner, self.attempt) as connection:
                into(connection)

        if self._open is None:
            self.database.persist(once)
        else:
            into(self._open)


def storable(text: str) -> str:
    """A text of an exception without what some databases do not keep: NUL, and surrogates without their other half."""
    return text.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


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
) -> dict[str, Any]:
    return {
        "valid_score": valid_score,
        "valid_bits": None if valid_score is None else bits_of(valid_score),
        "valid_step": valid_step,
        "test_score": test_score,
        "test_bits": None if test_score is None else bits_of(test_score),
    }
