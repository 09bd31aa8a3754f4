"""The number of positions in a learned encoding, and in a table of distances without a clip.

It stands alone because readers of text need it too, and what they import decides which cached corpora are still good.
"""

MAX_POSITIONS = 1024
