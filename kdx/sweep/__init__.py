"""From a plan to recorded runs: what to do (`decide`), who does it (`local`, `server`, `worker`), and who holds what
(`owner`)."""
