"""How many positions are told apart: of a learned encoding, and of a table of distances that has no clip.

It stands alone because readers of text need it too, and what they import decides which cached corpora are still good.
"""

MAX_POSITIONS = 1024
