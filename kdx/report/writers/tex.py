"""Escapes text so that LaTeX prints it as it is.

Names come out as plain text under pdfTeX too, whose fonts have little beyond Latin: a letter that they lack stands as
its number, such as U+65E5. pylatexenc lets such letters through as they are, and pdfTeX stops at them; it also sets `"`
as two apostrophes, which changes the name.
"""

import re
import unicodedata

from kdx.report.sheet import DIGIT
from kdx.sanitize import sanitize

_BREAK = "\\allowbreak{}"
"""A place inside a word at which a line may end."""
_LONGEST_WORD = 20
"""Letters of a word from which on it may be broken, such as a signature."""
_SIGNS = {
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "`": "\\textasciigrave{}",
    # It is active under babel in German and other languages.
    '"': "\\symbol{34}",
    # Behind the end of a row LaTeX would read them as options.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    DIGIT: "\\phantom{0}",
}
_MATHS = {
    "†": "\\dagger",
    "‡": "\\ddagger",
    "±": "\\pm",
    "×": "\\times",
    "·": "\\cdot",
    "−": "-",
    "∞": "\\infty",
    "≤": "\\le",
    "≥": "\\ge",
    "≈": "\\approx",
    "≠": "\\ne",
    "↑": "\\uparrow",
    "↓": "\\downarrow",
    "→": "\\rightarrow",
    "←": "\\leftarrow",
}
_AS_THEY_ARE = frozenset("–—‘’“”…§ßæÆœŒøØłŁı")
_OGONEK = "\u0328"
"""The accent that the fonts of pdfTeX lack."""
# Two in a row would become a dash or a double quote.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')")
# The other Greek letters look like Latin ones and have no command.
_GREEK = re.compile(
    "alpha|beta|[Gg]amma|[Dd]elta|epsilon|zeta|eta|[Tt]heta|iota|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i|rho|[Ss]igma|tau|"
    "[Uu]psilon|[Pp]hi|chi|[Pp]si|[Oo]mega"
)


def tex(text: str) -> str:
    """Escape text so that LaTeX prints it as it is."""
    return spelled(sanitize(text))


def spelled(text: str) -> str:
    """Escape text that is already sanitized, see `tex`."""
    return _LIGATURE.sub("{}", "".join(map(_character, unicodedata.normalize("NFC", text))))


def breakable_tex(text: str) -> str:
    """Escape text so that long words, such as signatures, may be broken after a sign, or else anywhere."""
    parts = []
    for word in re.split(r"(?<=\s)", sanitize(text)):
        pieces = re.split(r"(?<=[-+/._:|])", word) if len(word) > _LONGEST_WORD else [word]
        pieces = [part for piece in pieces for part in (piece if len(piece) > _LONGEST_WORD else [piece])]
        parts.append(_BREAK.join(map(spelled, filter(None, pieces))))
    return "".join(parts)


def raised(sign: str) -> str:
    """A mathematical sign, raised."""
    return f"$^{_MATHS[sign]}$"


def _character(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character in _MATHS:
        return f"${_MATHS[character]}$"
    if character.isascii() or character in _AS_THEY_ARE:
        return character
    decomposed = unicodedata.normalize("NFD", character)
    letter, accents = decomposed[0], decomposed[1:]
    if accents and letter.isascii() and ord(character) < 0x180 and _OGONEK not in accents:
        return character
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if greek:
        name = greek[2].lower().replace("lamda", "lambda")
        name = name if greek[1] == "SMALL" else name.capitalize()
        if _GREEK.fullmatch(name):
            return f"$\\{name}$"
    return f"U+{ord(character):04X}"
