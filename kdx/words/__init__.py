"""The names that a grid gives to kernels, positions, tasks and the like, and what kdx knows of each.

A class says it once, in attributes with literal values:

    class Cauchy(KernelFunction):
        name = "cauchy"
        formula = "k(q, k) = 1 / (1 + |q - k|² / b²)"
        source = "Cauchy 1853"
        bandwidth: float = option(1.0, above=0)
        'b, in units of a feature.'

What it does not say itself is what its base classes say. `make words` copies the classes of kdx into `table.json`, from
which a grid is checked and a name explained without importing torch; the literals of a class outside kdx are read from
its source, and nothing of it is run.
"""

from kdx.words.option import option

__all__ = ["option"]
