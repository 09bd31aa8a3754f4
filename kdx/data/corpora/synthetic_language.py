"""A generated language for prediction word by word, in which near and far context determines the next word.

The text comes in paragraphs, each a few sentences (one a line) about the same three people, closed by an empty line:

    the baker is mira .
    the farmer is tomas .
    the smith is lena .
    the dogs that the baker near the old house likes sing .
    the farmer is tomas .
    lena follows the cats .
    she waits .

A model has to learn three things, each at a greater distance than the one before. A verb agrees in number with its
subject, across relative clauses and prepositional phrases, which may be nested. A pronoun has the gender of the person
named before it. The trades of people are stated once, at the top of the paragraph, and change with each paragraph, so
that only the context shows them.
"""

from random import Random

from kdx.data.text import PLAIN, GeneratedText, Lines
from kdx.vocabulary import Split

HELD_OUT_LINES = {Split.VALID: 300, Split.TEST: 300}

_PEOPLE = (
    *((name, "she") for name in ("mira", "lena", "rosa", "anna", "ida", "vera", "nora", "edda")),
    *((name, "he") for name in ("tomas", "karel", "bruno", "viktor", "oskar", "jonas", "pavel", "emil")),
)
_TRADES = ("baker", "farmer", "smith", "weaver", "sailor", "miller", "painter", "doctor")
# Singular, plural.
_NOUNS = (
    ("dog", "dogs"),
    ("cat", "cats"),
    ("horse", "horses"),
    ("child", "children"),
    ("house", "houses"),
    ("tree", "trees"),
)
_TRANSITIVE = (("sees", "see"), ("likes", "like"), ("follows", "follow"), ("paints", "paint"))
_INTRANSITIVE = (("sings", "sing"), ("sleeps", "sleep"), ("waits", "wait"), ("laughs", "laugh"))
_ADJECTIVES = ("old", "small", "white", "quiet", "big")
_PREPOSITIONS = ("near", "behind", "under")
_DEEPEST = 2  # clauses and phrases inside one another


def generate(seed: int, lines: int) -> Lines:
    """Return the text of every split, by suffix; a pure function of `seed` and of the number of training `lines`.

    Fewer training lines are a prefix of more; valid and test do not depend on their number.
    """
    return {
        split: {"txt": _lines(Random(f"synthetic-language {seed} {split}"), count)}
        for split, count in ((Split.TRAIN, lines), *HELD_OUT_LINES.items())
    }


def _lines(random: Random, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count:
        lines += [*_paragraph(random), ""]
    return lines[:count]


def _paragraph(random: Random) -> list[str]:
    trades = random.sample(_TRADES, 3)
    people = list(zip(random.sample(_PEOPLE, 3), trades, strict=True))
    sentences = [["the", trade, "is", name] for (name, _), trade in people]
    for _ in range(random.randrange(4, 8)):
        (name, pronoun), trade = random.choice(people)
        kind = random.random()
        if kind < 0.4:
            sentences.append(["the", trade, "is", name])
        elif kind < 0.7:
            sentences.append([name, *_predicate(random, False, 1, trades)])
            sentences.append([pronoun, *_predicate(random, False, 1, trades)])
        else:
            subject, plural = _noun_phrase(random, 0, trades)
            sentences.append([*subject, *_predicate(random, plural, 1, trades)])
    return [" ".join([*sentence, "."]) for sentence in sentences]


def _noun_phrase(random: Random, depth: int, trades: list[str]) -> tuple[list[str], bool]:
    """Return a phrase, and whether it is plural; `depth` clauses and phrases enclose it."""
    plural = random.random() < 0.5
    # The people of a paragraph are single persons, so only other nouns can be plural.
    noun = random.choice(_NOUNS)[plural] if plural or random.random() < 0.5 else random.choice(trades)
    adjective = [random.choice(_ADJECTIVES)] if random.random() < 0.3 else []
    return ["the", *adjective, noun, *_modifier(random, plural, depth, trades)], plural


def _modifier(random: Random, plural: bool, depth: int, trades: list[str]) -> list[str]:
    """Return a relative clause or a prepositional phrase after a noun, or nothing."""
    kind = random.random()
    if depth == _DEEPEST or kind < 0.5:
        return []
    if kind < 2 / 3:
        return [random.choice(_PREPOSITIONS), *_noun_phrase(random, depth + 1, trades)[0]]
    if kind < 5 / 6:
        return ["that", *_predicate(random, plural, depth + 1, trades)]
    subject, plural_subject = _noun_phrase(random, depth + 1, trades)
    return ["that", *subject, random.choice(_TRANSITIVE)[plural_subject]]


def _predicate(random: Random, plural: bool, depth: int, trades: list[str]) -> list[str]:
    """Return a verb that agrees with its subject, and its object if it has one."""
    if random.random() < 0.5:
        return [random.choice(_INTRANSITIVE)[plural]]
    return [random.choice(_TRANSITIVE)[plural], *_noun_phrase(random, depth, trades)[0]]


TEXT = GeneratedText(PLAIN, train_lines=9000, generate=generate)
