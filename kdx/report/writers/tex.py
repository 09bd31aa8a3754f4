"""Escapes text so that LaTeX prints it as it is, and estimates how wide it is set.

Names come out as plain text under pdfTeX too, whose fonts have little beyond Latin: accents are composed, and a letter
that the fonts lack stands as its number, such as U+65E5. pylatexenc lets such letters through as they are, and
pdfTeX stops at them; it also sets `"` as two apostrophes, which changes the name.
"""

import re
import unicodedata
from functools import lru_cache

from kdx.report.fit import breakable
from kdx.sanitize import sanitize

BREAK = "\\allowbreak{}"
"""Where a line may end inside a word."""

EM = 1000
"""An em in the unit of all widths, a thousandth of the height of the type."""
_TOKEN = 10 * EM
"""A word that is wider than this, such as a signature, may be broken anywhere in a note."""
DIGIT = "\u2007"  # a blank as wide as a digit
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
    "–": "\\textendash{}",
    "—": "\\textemdash{}",
    "‘": "\\textquoteleft{}",
    "’": "\\textquoteright{}",
    "“": "\\textquotedblleft{}",
    "”": "\\textquotedblright{}",
    "…": "\\ldots{}",
    "§": "\\S{}",
    "ß": "\\ss{}",
    "æ": "\\ae{}",
    "Æ": "\\AE{}",
    "œ": "\\oe{}",
    "Œ": "\\OE{}",
    "ø": "\\o{}",
    "Ø": "\\O{}",
    "ł": "\\l{}",
    "Ł": "\\L{}",
    "ı": "\\i{}",
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
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u ",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r ",
    "\u030b": "H ",
    "\u030c": "v ",
    "\u0323": "d ",
    "\u0327": "c ",
}
# Two in a row would become a dash or a double quote.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')")
# The other Greek letters look like Latin ones and have no command.
_GREEK = re.compile(
    "alpha|beta|[Gg]amma|[Dd]elta|epsilon|zeta|eta|[Tt]heta|iota|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i|rho|[Ss]igma|tau|"
    "[Uu]psilon|[Pp]hi|chi|[Pp]si|[Oo]mega"
)
_WIDTHS = {
    **dict.fromkeys("ijl.,:;'!|‘’·[]", 290),
    **dict.fromkeys(" f-", 333),
    **dict.fromkeys("rst()*", 395),
    **dict.fromkeys("ace?zovgyx†‡", 500),
    **dict.fromkeys("0123456789/\u2007+<>=", 500),
    **dict.fromkeys("bdhknpqu", 556),
    **dict.fromkeys("+<>=±×−≤≥≈wJILS", 778),
    **dict.fromkeys("mM%W—∞→←…", 1028),
}
"""Letter → its width in Computer Modern; other letters and signs count as capitals."""
_CAPITAL = 770


def tex(text: str) -> str:
    """Escapes text so that LaTeX prints it as it is."""
    return spelled(sanitize(text))


def spelled(text: str) -> str:
    """Escapes text that is already sanitized, see `tex`."""
    return _LIGATURE.sub("{}", "".join(map(_character, unicodedata.normalize("NFC", text))))


def raised(sign: str) -> str:
    """A mathematical sign, raised."""
    return f"$^{_MATHS[sign]}$"


def _character(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character in _MATHS:
        return f"${_MATHS[character]}$"
    if character.isascii():
        return character
    apart = unicodedata.normalize("NFD", character)
    base, accents = apart[0], apart[1:]
    if accents and base.isascii() and all(accent in _ACCENTS for accent in accents):
        letter = _character(base)
        for accent in accents:
            letter = f"{{\\{_ACCENTS[accent]}{letter}}}"
        return letter
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if greek:
        letter = greek[2].lower().replace("lamda", "lambda")
        letter = letter if greek[1] == "SMALL" else letter.capitalize()
        if _GREEK.fullmatch(letter):
            return f"$\\{letter}$"
    return f"U+{ord(character):04X}"


def breakable_tex(text: str, width: float = _TOKEN) -> str:
    """Escapes text for LaTeX and lets it break words that are wider than `width`."""
    written = ""
    for part in breakable(unicodedata.normalize("NFC", sanitize(text)), width, width_of):
        written += spelled(part) if part.endswith(" ") else f"{spelled(part)}{BREAK}"
    return written.removesuffix(BREAK)


@lru_cache(10_000)
def width_of(text: str) -> float:
    """The approximate width of the text as it is set."""
    return sum(_WIDTHS.get(sign) or _width_of_sign(sign) for sign in text)


def _width_of_sign(sign: str) -> float:
    """The width of a letter under its accent; a letter that stands as its number is as wide as six capitals."""
    letter = unicodedata.normalize("NFD", sign)[0]
    return 6 * _CAPITAL if _character(sign).startswith("U+") else _WIDTHS.get(letter, _CAPITAL)
