"""The results database: tables, migrations, what writes them and what reads them. No torch.

What keeps the tables is behind the promises of `backend.py`; SQLite, in `sqlite/`, is the one that is there. Readers
may hold up writers, so they load what they need in one short transaction and compute after it.

A run's row lives for ever and only its state moves. Whoever claims it gets the next attempt number; every transaction
of a worker begins by checking (owner, attempt), so one that lost its claim can write nothing more (`leases.py`).
"""
