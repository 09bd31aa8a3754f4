"""IWSLT'14 German to English: transcribed TED talks, tokenised and lower-cased as the literature does.

The campaign's own archive becomes text by the recipe that published scores share (Ranzato et al. 2016, and fairseq's
script): lines of metadata on a talk are dropped, except its title and description; Moses' tokeniser is applied; pairs
are dropped that have an empty side, more than 175 words on a side, or more than 1.5 times the words of the other side;
text is lower-cased. Every 23rd pair is validation text, and the test text is five whole sets of talks. Six files of raw
text are treated in the same way, and text that was tokenised elsewhere is used unchanged. Tokenisers differ between
versions, and with them the words and the dropped pairs, so a difference is noted.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from kdx.data.text import Files, KnownFile, KnownText, Original, Progress, TextFile
from kdx.data.text_files import segments, text_of_lines
from kdx.errors import KdxError
from kdx.vocabulary import Split

_LANGUAGES = ("de", "en")
_TALKS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_NOT_SPOKEN = re.compile(r"<(url|talkid|keywords|speaker|reviewer|translator|doc)\b|</doc>")
_SPOKEN_TAG = re.compile(r"</?(title|description)>")
_MOST_WORDS, _MOST_RATIO = 175, 1.5
_EVERY = 23
_ATTACHED = re.compile(r"[^\W\d_][.,!?](?:\s|$)")
"""A punctuation mark attached to a word: in 1 % of tokenised lines, at abbreviations, and in most raw lines."""


def make(files: Files, progress: Progress) -> Original | None:
    """Make the corpus from the campaign's archive; None if `files` are not that archive.

    Raises:
        KdxError: a file of the archive is missing, or the sides of a text differ in length.
    """
    named = {path.name: text for path, text in files.items()}
    training = [f"train.tags.de-en.{language}" for language in _LANGUAGES]
    if not any(name in named for name in training):
        return None
    talks = [[f"IWSLT14.{talk}.de-en.{language}.xml" for language in _LANGUAGES] for talk in _TALKS]
    if missing := [name for name in (*training, *chain.from_iterable(talks)) if name not in named]:
        raise KdxError(f"of the original archive are missing: {', '.join(missing)}")
    spoken = _sides([named[name] for name in training], _spoken)
    heard = [_sides([named[name] for name in names], _segments) for names in talks]
    texts: dict[str, TextFile] = {}
    kept = _clean(_tokenised(spoken, progress))
    tests = _tokenised([[line for talk in heard for line in talk[side]] for side in range(len(_LANGUAGES))], progress)
    for side, language in enumerate(_LANGUAGES):
        text = [pair[side].lower() for pair in kept]
        place = named[training[side]].place
        texts[f"train.{language}"] = text_of_lines(
            place, [line for number, line in enumerate(text, 1) if number % _EVERY]
        )
        texts[f"valid.{language}"] = text_of_lines(place, text[_EVERY - 1 :: _EVERY])
        texts[f"test.{language}"] = text_of_lines(named[talks[0][side]].place, [line.lower() for line in tests[side]])
    return Original(texts)


def processed(texts: Mapping[str, TextFile], progress: Progress) -> Original:
    """Return the six files; a split of raw text is tokenised, lower-cased and, for training, cleaned.

    Raises:
        KdxError: the sides of raw text differ in length.
    """
    done, notes = dict(texts), []
    for split in Split:
        names = [f"{split}.{language}" for language in _LANGUAGES]
        sides = _sides([texts[name] for name in names], TextFile.decoded)
        if not _is_raw(sides):
            continue
        tokens = _tokenised(sides, progress)
        how = "tokenised"
        if split is Split.TRAIN:
            kept = _clean(tokens)
            how = f"tokenised, cleaned (of {len(sides[0]):,} pairs {len(kept):,} stay)"
            tokens = [[pair[side] for pair in kept] for side in range(len(names))]
        notes.append(f"{', '.join(names)}: raw text, which kdx has {how} and lower-cased")
        for name, side in zip(names, tokens, strict=True):
            done[name] = text_of_lines(texts[name].place, [line.lower() for line in side])
    return Original(done, tuple(notes))


def _is_raw(sides: Sequence[Sequence[str]]) -> bool:
    """Return whether punctuation is attached to words in more than a third of the lines."""
    lines = list(chain.from_iterable(sides))
    return 3 * sum(1 for line in lines if _ATTACHED.search(line)) > len(lines)


def _tokenised(sides: Sequence[Sequence[str]], progress: Progress) -> list[list[str]]:
    from kdx.data.moses import tokenised  # slow to import, and nothing else needs it

    return [tokenised(side, language, progress) for side, language in zip(sides, _LANGUAGES, strict=True)]


def _spoken(text: TextFile) -> Iterator[str]:
    return (_SPOKEN_TAG.sub("", line) for line in text.decoded() if not _NOT_SPOKEN.search(line))


def _segments(text: TextFile) -> Iterator[str]:
    return (line.replace("’", "'") for line in segments(text))


def _sides(texts: Sequence[TextFile], read: Callable[[TextFile], Iterator[str]]) -> list[list[str]]:
    sides = [list(read(text)) for text in texts]
    if len(sides[0]) != len(sides[1]):
        raise KdxError(
            f"{len(sides[1])} lines of text, but {len(sides[0])} in {texts[0].place}; line by line they must match",
            place=texts[1].place,
        )
    return sides


def _clean(sides: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the tokenised pairs that are kept."""
    return [pair for pair in zip(*sides, strict=True) if _fits(*(len(side.split()) for side in pair))]


def _fits(source: int, target: int) -> bool:
    short, long = sorted((source, target))
    return short >= 1 and long <= _MOST_WORDS and long / short <= _MOST_RATIO


_FILES: Mapping[str, KnownFile] = {
    "train.de": KnownFile(160_239),
    "train.en": KnownFile(160_239),
    "valid.de": KnownFile(7283, "3f051579c9d8c7281a6ea8c72ad4ae09dbaa9bb24dfd41166f2c3a3df7cd940a"),
    "valid.en": KnownFile(7283, "e6d7317a9772cd1ed970910c611e9e7dada1f34439269b44a9d801334bff948d"),
    "test.de": KnownFile(6750, "e718c783e33160b7d72af8f733756a466e0d0c016eff8ab624c1b0d1d01cbbdf"),
    "test.en": KnownFile(6750, "4b127beb9050511a3e6209cd837ff36f623a3a423666b32aba6e208b7330cf4c"),
}

TEXT = KnownText(
    suffixes=_LANGUAGES,
    folder="iwslt14",
    licence="CC BY-NC-ND, TED talks by way of WIT3; processed copies are not to be published",
    tokenised=True,
    address="https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
    files=_FILES,
    exact=False,
    original=make,
    processed=processed,
)
