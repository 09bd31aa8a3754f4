"""The results database: tables, migrations, what writes them and what reads them. No torch.

SQLite runs with journal_mode=TRUNCATE and synchronous=FULL: a commit survives a power cut, and the write-ahead log is
avoided, whose reset could corrupt a file that several processes write (SQLite 3.7.0 to 3.51.2, and other programs open
the file with whatever SQLite they carry). Readers hold up writers in this mode, so they load what they need in one
short transaction and compute after it.

A run's row lives for ever and only its state moves. Whoever claims it gets the next attempt number; every transaction
of a worker begins by checking (owner, attempt), so one that lost its claim can write nothing more.
"""
