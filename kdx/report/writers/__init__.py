"""Sheets, tables and claims as text, one module a format; none of them computes."""
