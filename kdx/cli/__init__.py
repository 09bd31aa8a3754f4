"""The command line: one file for each command, assembled in `app`. Only this package prints and exits.

Its modules import nothing heavy at their top, since help and completion must not wait for torch, SQLAlchemy or
pydantic. A command imports what it needs when it runs.
"""
