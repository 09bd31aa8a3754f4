"""SQLite as the backend of a results database: all that is SQLite's own, and nothing that is not.

It runs with journal_mode=TRUNCATE and synchronous=FULL: a commit survives a power cut, and the write-ahead log is
avoided, whose reset could corrupt a file that several processes write (SQLite 3.7.0 to 3.51.2, and other programs open
the file with whatever SQLite they carry). Readers hold up writers in this mode.
"""
