"""All the words of an attention, and the keys that they bring along."""

from kdx.attention.families import FAMILIES, options_of_words


def test_every_option_of_every_word_is_known_and_says_what_it_is() -> None:
    declared = [one for family in FAMILIES for known in family.definitions() for one in known.options]
    assert options_of_words().keys() == {one.name for one in declared}
    assert all(one.title for one in declared)


def test_two_words_that_have_an_option_have_the_same() -> None:
    """Else one key of a cell would mean two things."""
    for family in FAMILIES:
        for known in family.definitions():
            assert all(options_of_words()[one.name] == one for one in known.options), known.word
