"""From a sweep's records to a table: layout, comparisons, audit and notes, each of which uses only those before it."""
