"""Generated lines for classification by the acting person, which depends only on word order.

    the baker thanks the miller today       baker
    the miller is thanked by the baker      baker
    it is the baker that the miller thanks  miller

A line names two people of different trades, in one of four constructions, with uninformative words between. The label
is the trade of the acting person. Each line has a counterpart of the same words in which the other person acts, so a
model that does not see the order is right half of the time.
"""

from random import Random

from kdx.data.text import GeneratedText, Lines, draw_lines
from kdx.vocabulary import Split

SUFFIXES = ("txt", "labels")
HELD_OUT_LINES = {Split.VALID: 400, Split.TEST: 1000}
TRADES = ("baker", "miller", "smith", "weaver")
_VERBS = (("thanks", "thanked"), ("visits", "visited"), ("paints", "painted"), ("follows", "followed"))
_ADJECTIVES = ("old", "tall", "quiet", "clever")
_ADVERBS = ("today", "often", "in town", "at night")


def generate(seed: int, lines: int) -> Lines:
    """Return the text of every split, see `draw_lines`, with this number of training `lines`."""
    return draw_lines("synthetic-order", seed, {**HELD_OUT_LINES, Split.TRAIN: lines}, SUFFIXES, _line)


def _line(random: Random) -> tuple[str, str]:
    trade, other = random.sample(TRADES, 2)
    acts, is_acted_on = random.choice(_VERBS)
    first, second = (f"the {_adjective(random)}{name}" for name in (trade, other))
    adverb = f" {random.choice(_ADVERBS)}" if random.random() < 0.5 else ""
    construction, actor = random.choice(
        (
            (f"{first} {acts} {second}", trade),
            (f"{first} is {is_acted_on} by {second}", other),
            (f"it is {first} that {acts} {second}", trade),
            (f"it is {first} that {second} {acts}", other),
        )
    )
    return construction + adverb, actor


def _adjective(random: Random) -> str:
    return f"{random.choice(_ADJECTIVES)} " if random.random() < 0.3 else ""


TEXT = GeneratedText(SUFFIXES, train_lines=6000, generate=generate)
