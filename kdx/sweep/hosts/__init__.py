"""Hosts start the processes of runs: the interface (`host`) and its implementations."""
