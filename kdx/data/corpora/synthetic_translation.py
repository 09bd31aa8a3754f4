"""A generated translation task in which position matters, small enough to learn in seconds.

The source has the order subject–verb–object, adjectives before their noun, and the time last:

    the old cat that saw my dog chased the birds near my foxes yesterday

The target has the time first and the verb last; adjective and article follow their noun, and a relative clause or a
prepositional phrase is between the subject and the rest of the sentence:

    lume miru sona la rado mi vena ke tikin la zefun mi apu sequa

The lexicon is one-to-one except for the verb, which agrees in gender and number with its subject at any distance.
Subjects, objects and the nouns between them come from the same list, so the words of a sentence without their order do
not show who does what to whom.
"""

from random import Random

from kdx.data.text import GeneratedText, Lines, draw_lines
from kdx.vocabulary import Split

LONGEST = 14  # words of a source sentence
SUFFIXES = ("source", "target")
HELD_OUT_LINES = {Split.VALID: 200, Split.TEST: 200}

# (source singular, source plural), (target singular, target plural), gender.
_NOUNS = (
    (("dog", "dogs"), ("rado", "radon"), "o"),
    (("cat", "cats"), ("miru", "mirun"), "a"),
    (("bird", "birds"), ("tiki", "tikin"), "o"),
    (("horse", "horses"), ("balo", "balon"), "a"),
    (("fox", "foxes"), ("zefu", "zefun"), "o"),
    (("child", "children"), ("nemi", "nemin"), "a"),
    (("farmer", "farmers"), ("goru", "gorun"), "o"),
    (("queen", "queens"), ("pasi", "pasin"), "a"),
    (("friend", "friends"), ("amu", "amun"), "o"),
    (("witch", "witches"), ("veki", "vekin"), "a"),
)
# Source form, target stem; the ending is the subject's gender, and n for plural.
_VERBS = (("saw", "ven"), ("chased", "sequ"), ("called", "kant"), ("found", "trov"), ("followed", "lur"))
_ADJECTIVES = (("old", "sona"), ("small", "pike"), ("white", "albe"), ("clever", "ruze"), ("tired", "dome"))
_ARTICLES = (("the", "la"), ("my", "mi"))
_PREPOSITIONS = (("near", "apu"), ("behind", "dose"))
_THAT = ("that", "ke")
_TIMES = (("yesterday", "lume"), ("often", "sove"), ("today", "hode"))

_Phrase = tuple[list[str], list[str]]


def generate(seed: int, lines: int) -> Lines:
    """Return the text of every split, see `draw_lines`, with this number of training `lines`."""
    return draw_lines("synthetic-translation", seed, {**HELD_OUT_LINES, Split.TRAIN: lines}, SUFFIXES, _pair)


def _pair(random: Random) -> tuple[str, str]:
    while True:
        source, target = _sentence(random)
        if len(source) <= LONGEST:
            return " ".join(source), " ".join(target)


def _sentence(random: Random) -> _Phrase:
    subject, target_subject, ending = _noun_phrase(random)
    between, target_between = _modifier(random, ending)
    verb, stem = random.choice(_VERBS)
    object_, target_object, object_ending = _noun_phrase(random)
    after, target_after = _modifier(random, object_ending)
    source = [*subject, *between, verb, *object_, *after]
    target = [*target_subject, *target_between, *target_object, *target_after, stem + ending]
    if random.random() < 0.5:
        time, target_time = random.choice(_TIMES)
        source, target = [*source, time], [target_time, *target]
    return source, target


def _noun_phrase(random: Random) -> tuple[list[str], list[str], str]:
    """Return a phrase in source and target, and the ending of a verb whose subject it is."""
    forms, target_forms, gender = random.choice(_NOUNS)
    plural = random.random() < 0.5
    article, target_article = random.choice(_ARTICLES)
    source, target = [forms[plural]], [target_forms[plural]]
    if random.random() < 0.5:
        adjective, target_adjective = random.choice(_ADJECTIVES)
        source, target = [adjective, *source], [*target, target_adjective]
    return [article, *source], [*target, target_article], gender + "n" * plural


def _modifier(random: Random, ending: str) -> _Phrase:
    """Return a relative clause, a prepositional phrase or nothing, to follow a noun."""
    kind = random.random()
    if kind < 1 / 3:
        return [], []
    noun, target_noun, _ = _noun_phrase(random)
    if kind < 2 / 3:
        preposition, target_preposition = random.choice(_PREPOSITIONS)
        return [preposition, *noun], [*target_noun, target_preposition]
    verb, stem = random.choice(_VERBS)
    that, target_that = _THAT
    return [that, verb, *noun], [*target_noun, stem + ending, target_that]


TEXT = GeneratedText(SUFFIXES, train_lines=4000, generate=generate)
