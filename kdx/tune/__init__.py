"""Searches the parameters of cells with Optuna: draws trials, ends hopeless ones early, and picks winners."""
