"""Computes a sweep's tables from its records; only the renderers round numbers.

The walk: `selection` picks each cell's run, by the arithmetic of `statistics`; `table` lays the cells out, compares
them and writes their notes; `papers` has what others published and claim; `render` writes tables, one module for each
format. Names come from grids that anyone may have written, so every renderer sanitizes them (`kdx.sanitize`).
Nothing here reads the database: a report works on frozen records, after the connection is closed.
"""
