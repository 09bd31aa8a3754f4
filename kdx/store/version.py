"""The schema of this kdx, known without a database library."""

REVISION = "0001"
"""The number of the schema, which a change of a table raises."""

VERSION_TABLE = "kdx_schema"
"""The table with that number."""
