"""Selects the run that stands for a cell, and summarises the runs of a cell."""
