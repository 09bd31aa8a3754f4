"""Does this build, on this device, compute what the papers say?

`properties` lists what every attention must be, `cases` has the attentions that are checked, `interface` says what a
component must give, and `golden` compares with vectors from elsewhere.
"""
