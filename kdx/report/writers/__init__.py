"""Tables and claims in words, one module a format."""
