"""The command line: one command a file, assembled in `app`. Only here is anything printed, and only here exits.

Modules of this package import nothing heavy at their top: help and completion must not wait for torch, SQLAlchemy or
pydantic. What a command needs it imports when it runs.
"""
