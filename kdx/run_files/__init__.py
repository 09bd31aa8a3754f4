"""The files of runs: their names and places (`files`), the database that owns their folder (`folder_ownership`), which
files are kept (`retention`), their faults (`repair`), and loading a run's model in Python (`load_run`)."""
