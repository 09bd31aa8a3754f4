"""Starts workers with Slurm. The database alone decides what they do; a job's state decides nothing about a run."""
