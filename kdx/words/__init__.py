"""The names of kernels, positions, tasks and the like in a grid, and what kdx knows about each.

A class declares it once, in attributes with literal values:

    class Cauchy(KernelFunction):
        name = "cauchy"
        formula = "k(q, k) = 1 / (1 + |q - k|² / b²)"
        source = "Cauchy 1853"
        bandwidth: float = option(1.0, above=0)
        'b, in units of a feature.'

It inherits the rest from its base classes. `make words` copies the classes of kdx into `table.json`, so a grid is
checked and a name explained without importing torch. The literals of a class outside kdx are read from its source,
which is not run.
"""

from kdx.words.option import option

__all__ = ["option"]
