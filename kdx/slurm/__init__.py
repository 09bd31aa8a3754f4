"""Slurm starts workers; what they do comes from the database, and Slurm's word decides nothing about a run."""
