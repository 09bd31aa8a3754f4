"""Custom components: kernels, positions and other classes whose source lies outside kdx.

`kernel: my_kernels.py:Cauchy` in a grid names a class in a file at or below the grid's folder; an installed package
adds names through entry points. The source is read as text, together with the neighbouring modules that it imports. Its
hash and the name of the class are in the identity of each cell that uses it; the path is not. The text is sent to the
processes of the runs and kept in the database. Commands that only read, such as `kdx plan`, use the literals that the
class declares and run nothing. Code never comes from a database: to resume a run, a user needs the file.
"""
