"""The history of a sweep: every plan that it has had, with its grid as it was written."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select

from kdx.grid.plan import Plan
from kdx.store.database import Database
from kdx.store.records import PlanRecord
from kdx.store.schema import now, plan, plan_cell


def keep(connection: Connection, sweep_id: int, grid: Mapping[str, Any], planned: Plan) -> None:
    """Adds a plan to the history of a sweep, unless the sweep follows it already. Its cells are recorded before.

    Args:
        grid: the parts of the grid that concern no single cell; any JSON.
    """
    newest = connection.execute(
        select(plan.c.id, plan.c.grid, plan.c.sources)
        .where(plan.c.sweep_id == sweep_id)
        .order_by(plan.c.id.desc())
        .limit(1)
    ).one_or_none()
    cells = {trained.id for trained in planned.trained}
    if newest is not None and newest.sources == dict(planned.sources):
        # Another command may come to the same plan.
        same = {**newest.grid, "command": ""} == {**json.loads(json.dumps(grid)), "command": ""}
        if same and cells == set(
            connection.scalars(select(plan_cell.c.cell_id).where(plan_cell.c.plan_id == newest.id))
        ):
            return
    added = insert(plan).values(sweep_id=sweep_id, made=now(), grid=dict(grid), sources=dict(planned.sources))
    plan_id = connection.execute(added.returning(plan.c.id)).scalar_one()
    if cells:
        connection.execute(insert(plan_cell), [{"plan_id": plan_id, "cell_id": cell_id} for cell_id in sorted(cells)])


def history(database: Database, sweep_id: int) -> tuple[PlanRecord, ...]:
    """Every plan of a sweep, the first one first; the sweep follows the last."""
    of_sweep = plan.c.sweep_id == sweep_id
    with database.read() as connection:
        rows = connection.execute(select(plan).where(of_sweep).order_by(plan.c.id)).all()
        cells: dict[int, list[str]] = defaultdict(list)
        for plan_id, cell_id in connection.execute(
            select(plan_cell.c.plan_id, plan_cell.c.cell_id).join(plan).where(of_sweep).order_by(plan_cell.c.cell_id)
        ):
            cells[plan_id].append(cell_id)
    return tuple(PlanRecord(row.id, row.made, row.grid, row.sources, tuple(cells[row.id])) for row in rows)
