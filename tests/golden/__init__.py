"""The golden set: what kdx gave a user when these files were written.

`produce` makes everything through the command line, `kdx.api` and `kdx.attention`; `python -m tests.golden` writes the
files anew, `tests/test_golden.py` compares. Nothing here holds an id, a time, a host or a version.
"""
