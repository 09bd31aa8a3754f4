"""The results database: its tables, migrations, and the code that writes and reads them. No torch.

A database is kept by a backend with the promises of `backend.py`; SQLite, in `sqlite/`, is the only one so far. Readers
may block writers, so they load what they need in one short transaction and compute after it.

A run's row is never deleted; only its state changes. A claim gets the next attempt number, and every transaction of a
worker begins by checking (owner, attempt), so a worker that lost its claim can write nothing more (`claims.py`).
"""
