"""Verifies that this build, on this device, computes what the papers say.

`properties` lists the properties of every attention, `cases` the attentions that are checked, and `interface` checks
the outputs of a component.
"""
