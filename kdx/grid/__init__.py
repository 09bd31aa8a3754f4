"""Turns a grid file into its plan: `source`, `load` read it, `expand` multiplies it out, `identity` names its cells."""
