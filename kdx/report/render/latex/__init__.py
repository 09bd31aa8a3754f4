"""LaTeX: what is printed as it is, and tables that any distribution sets."""
