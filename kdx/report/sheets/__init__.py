"""Listings below or beside a table, as rows of words, so that each format needs to know only one shape."""
