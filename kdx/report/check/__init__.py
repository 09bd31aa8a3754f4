"""Compares what kdx wrote into a file, tables and numbers in prose, with what it writes now."""
