"""Makes a table of a sweep's records: layout, comparisons, audit and notes, each of which uses only those before it."""
