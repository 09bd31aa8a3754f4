"""The results database: its tables, and the code that writes and reads them. No torch.

`backend.Database` is a database of any kind; `sqlite` and `postgresql` have what depends on the kind. SQL keeps what
it can promise of a value, its type, range and reference, and whoever reads relies on it. Readers may block writers, so
they load what they need in one short transaction and compute after it.

A run's row is never deleted; only its state changes. A claim gets the next attempt number, and every transaction of a
worker begins by checking (owner, attempt), so a worker that lost its claim can write nothing more (`claims.py`).
"""
