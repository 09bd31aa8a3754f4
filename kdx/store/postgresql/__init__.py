"""PostgreSQL, for results that several machines write."""
