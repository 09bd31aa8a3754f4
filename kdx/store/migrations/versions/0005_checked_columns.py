"""Columns that hold what they are meant to hold, a name for the database itself, and what tells whose a file is.

SQLite adds no CHECK to a table that is there, so each is made anew. What stands in an older database and breaks one is
told, and nothing is changed.
"""

import secrets

import sqlalchemy as sa
from alembic import op

from kdx.store.columns import UnexpectedValueError

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Words and limits as of this revision; `kdx.store.schema` says what the columns mean.
STATES = "'pending', 'running', 'interrupted', 'failed', 'cancelled', 'completed', 'diverged', 'pruned'"
INTEGER = "typeof({0}) = 'integer'"
NUMBER = "typeof({0}) IN ('real', 'integer')"
TIME = f"{NUMBER} AND {{0}} BETWEEN 0 AND 253402300799"
STEP = f"{INTEGER} AND {{0}} >= 0"
COUNT = f"{STEP} AND {{0}} <= 1000000000"
FLAG = f"{INTEGER} AND {{0}} IN (0, 1)"
NAME = "typeof({0}) = 'text' AND length({0}) <= 1000"
LINE = "typeof({0}) = 'text' AND length({0}) <= 10000"
TEXT = "typeof({0}) = 'text' AND length({0}) <= 10000000"
JSON = f"{TEXT} AND CASE WHEN json_valid({{0}}) THEN json_type({{0}}) = 'object' ELSE 0 END"
PACKED = "typeof({0}) = 'blob' AND length({0}) <= 268435456"


def digits(count: int) -> str:
    return f"typeof({{0}}) = 'text' AND length({{0}}) = {count} AND NOT {{0}} GLOB '*[^0-9a-f]*'"


TRIGGER = (
    "CREATE TRIGGER run_final_state BEFORE UPDATE OF state ON run "
    "WHEN OLD.state IN ('completed', 'diverged', 'pruned') AND NEW.state <> OLD.state "
    "BEGIN SELECT RAISE(ABORT, 'a run never leaves a final state'); END"
)
CELL, SHA256 = digits(32), digits(64)
# Those that may be NULL are named behind the others of their table.
CHECKS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "sweep": ({"id": STEP, "name": NAME, "created": TIME, "updated": TIME, "grid": JSON}, {}),
    "cell": ({"id": CELL, "spec": TEXT}, {"resolved": TEXT}),
    "sweep_cell": ({"sweep_id": STEP, "cell_id": CELL, "ordinal": COUNT, "labels": JSON, "planned": FLAG}, {}),
    "sweep_run": ({"sweep_id": STEP, "cell_id": CELL, "seed": STEP, "planned": FLAG}, {}),
    "environment": ({"id": CELL, "environment": JSON}, {}),
    "run": (
        {
            "id": STEP,
            "cell_id": CELL,
            "seed": STEP,
            "generation": COUNT,
            "attempt": COUNT,
            "progress_step": STEP,
            "stalls": COUNT,
        },
        {
            "owner": NAME,
            "lease_until": TIME,
            "checkpoint_step": STEP,
            "valid_score": NUMBER,
            "valid_bits": INTEGER,
            "valid_step": STEP,
            "test_score": NUMBER,
            "test_bits": INTEGER,
            "weights_sha256": SHA256,
            "error": LINE,
            "undertrained": LINE,
            "definitions": JSON,
            "data_fingerprint": NAME,
            "data_facts": JSON,
            "code_fingerprint": NAME,
            "environment_id": CELL,
        },
    ),
    "attempt": (
        {"run_id": STEP, "number": STEP, "owner": NAME, "started": TIME, "first_step": STEP},
        {
            "ended": TIME,
            "outcome": f"{{0}} IN ({STATES}, 'lost')",
            "last_step": STEP,
            "traceback": TEXT,
            "environment_id": CELL,
            "resumed_step": STEP,
            "changes": TEXT,
        },
    ),
    "metric": (
        {"run_id": STEP, "name": NAME, "step": STEP, "bits": INTEGER, "writes": COUNT, "differs": COUNT},
        {"value": NUMBER},
    ),
    "output": ({"run_id": STEP, "name": NAME, "lines": PACKED, "count": COUNT, "sha256": SHA256}, {}),
}


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    checks = {"id": CELL.format("id"), "place": f"place IS NULL OR ({SHA256.format('place')})"}
    made = op.create_table(
        "identity",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("place", sa.String(64)),
        *(sa.CheckConstraint(text, name=name) for name, text in checks.items() if sqlite),
    )
    op.bulk_insert(made, [{"id": secrets.token_hex(16)}])
    op.add_column("run", sa.Column("checkpoint_step", sa.Integer))
    op.add_column("run", sa.Column("weights_sha256", sa.String(64)))
    if sqlite:
        check_columns(op.get_bind())


def check_columns(connection: sa.Connection) -> None:
    """Makes every table anew, with its checks; views and indices are made again as they were, and the one trigger.

    Raises:
        UnexpectedValueError: a row breaks one.
    """
    hanging = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL"
    kept = connection.exec_driver_sql(hanging).all()
    for kind, name, _ in kept:
        connection.exec_driver_sql(f'DROP {kind} IF EXISTS "{name}"')
    for table, (whole, nullable) in CHECKS.items():
        checks = {name: text.format(name) for name, text in whole.items()}
        checks |= {name: f"{name} IS NULL OR ({text.format(name)})" for name, text in nullable.items()}
        refuse(connection, table, checks)
        sql = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).scalar_one()
        columns, _, after = str(sql).partition("(")[2].rpartition(")")
        constraints = "".join(f", CONSTRAINT {table}_{name} CHECK ({text})" for name, text in checks.items())
        connection.exec_driver_sql(f"CREATE TABLE new_{table} ({columns}{constraints}){after}")
        connection.exec_driver_sql(f"INSERT INTO new_{table} SELECT * FROM {table}")
        connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(f"ALTER TABLE new_{table} RENAME TO {table}")
    for kind, _, sql in kept:
        if kind != "trigger":
            connection.exec_driver_sql(sql)
    connection.exec_driver_sql(TRIGGER)


def refuse(connection: sa.Connection, table: str, checks: dict[str, str]) -> None:
    """Tells of the first row that breaks a check, which the check alone would not."""
    holds = " AND ".join(f"({text})" for text in checks.values())
    row = connection.exec_driver_sql(f"SELECT * FROM {table} WHERE NOT coalesce({holds}, 0) LIMIT 1").one_or_none()
    if row is None:
        return
    for name, text in checks.items():
        wrong = f"SELECT {name} FROM {table} WHERE NOT coalesce({text}, 0) LIMIT 1"
        found = connection.exec_driver_sql(wrong).one_or_none()
        if found is not None:
            raise UnexpectedValueError(f"{table}.{name}", found[0], text)
