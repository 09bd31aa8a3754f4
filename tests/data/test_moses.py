import tarfile

import pytest

from kdx.data.moses import tokenised

LINES = {
    'Wow! "Ja," sagte er... (nicht 3,5 oder 1.000)': (
        "Wow ! &quot; Ja , &quot; sagte er ... ( nicht 3,5 oder 1.000 )",
        "de",
    ),
    "It's Dr. Smith's E-Mail, isn't it?": ("It &apos;s Dr. Smith &apos;s E-Mail , isn &apos;t it ?", "en"),
    "cap &amp; trade | [x] <y>": ("cap &amp; amp ; trade &#124; &#91; x &#93; &lt; y &gt;", "en"),
    "  two\u00a0words\u2028here ": ("two words here", "en"),
    "": ("", "en"),
}


@pytest.mark.parametrize(("line", "expected"), LINES.items())
def test_punctuation_stands_apart(line, expected):
    text, language = expected
    assert tokenised([line], language) == [text]


@pytest.mark.parametrize("end", ["the U.S", "number 25", "Ms", "etc", "a"])
def test_the_last_full_stop_stands_apart(end):
    assert tokenised([f"It is {end}.", f"It is {end}. he said", "And so ..."], "en") == [
        f"It is {end} .",
        f"It is {end}. he said",
        "And so ...",
    ]


def test_it_is_moses(shared):
    """Multi30k was tokenised by Moses itself, after lower-casing and normalising, which few of its lines need."""
    with tarfile.open(shared / "data" / "multi30k.tar.xz") as archive:
        for language in ("de", "en"):
            raw, known = (
                archive.extractfile(f"multi30k/{kind}/valid.{language}").read().decode().lower().splitlines()
                for kind in ("raw", "tok")
            )
            same = sum(ours == theirs for ours, theirs in zip(tokenised(raw, language), known, strict=True))
            assert same / len(known) > 0.99
