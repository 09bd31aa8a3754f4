"""PostgreSQL, which kdx does not open yet: only what its tables need is here."""
