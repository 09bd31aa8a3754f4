"""Runs a plan: `decide` chooses what to do with each run, `supervisor` has it done through one of `hosts`, `worker`
does it, and `lease_holder` keeps the claims of runs."""
