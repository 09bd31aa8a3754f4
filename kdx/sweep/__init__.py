"""From a plan to recorded runs: what to do (`decide`), who has it done (`supervisor`, through one of `hosts`), who does
it (`worker`), and who holds what (`lease_holder`, `held_leases`)."""
