"""What goes below or beside a table, row by row in words, so that a format need know only one shape."""
