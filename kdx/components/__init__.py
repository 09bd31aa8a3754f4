"""Custom components: kernels, positions and other classes whose source lies outside kdx.

`kernel: my_kernels.py:Cauchy` in a grid names a class in a file at or below the grid's folder; an installed package
brings names through entry points. The source is read as text, together with the modules beside it that it imports. Its
hash and the name of the class are in the identity of each cell that uses it, the path is not. The text travels to the
processes of the runs and is kept in the database. What reads only, such as `kdx plan`, takes what the class says of
itself in literals and runs nothing. A database is never where code comes from: whoever resumes a run has the file.
"""
