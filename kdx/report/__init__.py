"""From a sweep's records to its tables; every number is computed here and rounded only by the renderers.

The walk: `selection` picks each cell's run, by the arithmetic of `statistics`; `table` lays the cells out, compares
them and says what goes below; `papers` has what others published and claim; `render` writes it down, one module a
format. Names come from grids that anyone may have written, so every renderer makes them harmless (`kdx.sanitize`).
Nothing here reads the database: a report works on frozen records, after the connection is closed.
"""
