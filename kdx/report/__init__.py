"""Computes a sweep's tables from its records; only the writers round and lay out.

The walk: `selection` picks each cell's run, by the arithmetic of `statistics`; `table` lays the cells out, compares
them and writes their notes; `papers` has what others published and claim. `seeds_until` asks those comparisons which
seeds are needed, `tables` builds a table of all of it. `sheets` turns tables and claims into sheets (`sheet`), which
`writers` write, one module for each format; `figures` draws. `check` compares a file with what is written now.
Names come from grids that anyone may have written, so every writer sanitizes them (`kdx.sanitize`).
Nothing here reads the database: a report works on frozen records, after the connection is closed.
"""
