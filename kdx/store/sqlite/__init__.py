"""The SQLite backend of a results database: everything that is specific to SQLite.

It runs with journal_mode=TRUNCATE and synchronous=FULL, so that a commit survives a power cut. It avoids the
write-ahead log, whose reset could corrupt a file that several processes write (SQLite 3.7.0 to 3.51.2; other programs
open the file with any version). Readers block writers in this mode.
"""
