"""What `decide` is given comes from the database and from the files beside it."""
