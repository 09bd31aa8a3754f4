"""All the words of an attention, and the keys that they bring along."""

from kdx.attention.families import FAMILIES, options_of_words


def test_two_words_that_have_an_option_have_the_same() -> None:
    """Else one key of a cell would mean two things."""
    for family in FAMILIES:
        for known in family.definitions():
            assert all(options_of_words()[option.name] == option for option in known.options), known.word
