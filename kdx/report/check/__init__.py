"""Whether the numbers in a file that kdx wrote are still those of the database."""
