"""From a sweep's records to its tables; every number is computed here and rounded only by the renderers.

The walk: `best_seed` picks each cell's run, `statistics` summarises its seeds, `tables` lays the cells out, and one
module a format writes the table down. Names come from grids that anyone may have written, so every renderer makes them
`inert` first. Nothing here reads the database: a report works on frozen records, after the connection is closed.
"""
