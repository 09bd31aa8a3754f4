"""The temperature of the kernels that are exponentials of a distance or a product over √D."""

from kdx.attention.interfaces import KernelFunction
from kdx.words import option


class Tempered(KernelFunction):
    """A kernel with a temperature."""

    temperature: float = option(1.0, above=0)
    """T; the logarithm of the weight is divided by T√D."""
