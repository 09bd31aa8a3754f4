"""t, the vector of an absolute position: modules that map integers (…, T) to (…, T, M)."""

from kdx.attention.encodings.learned import Learned
from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.axes import Encoding, Sinusoids

ENCODINGS: dict[Encoding, type[Sinusoidal] | type[Learned]] = {
    Encoding.SINUSOIDAL: Sinusoidal,
    Encoding.LEARNED: Learned,
}


def encoding_of(
    encoding: Encoding, width: int, max_positions: int, sinusoids: Sinusoids = Sinusoids.VASWANI
) -> Sinusoidal | Learned:
    """The encoding of that name, M = `width` wide; a learned one has positions 0 to `max_positions` - 1."""
    return ENCODINGS[encoding](width, max_positions, sinusoids)
