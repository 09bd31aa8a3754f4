"""Parts of one's own: kernels, positions and other words whose source lies outside kdx.

`kernel: my_kernels.py:Cauchy` in a grid names a class in a file at or below the grid's folder; an installed package can
bring words through entry points. A source is read as text, together with the modules beside it that it imports, and
from then on the text is the part: its hash is in the identity of each cell that uses it, the text travels to the
processes of the runs and is kept in the database. What a part says of itself is read from the text, and nothing of it
is run before a run needs it. A database is never where code comes from: whoever goes on with such a run has the file.
"""
