"""WMT'14 English to German and to French, as Vaswani et al. 2017 and Shaw et al. 2018 use it.

The user provides the text: some 4.5 and 36 million pairs for training, newstest2013 for validation, newstest2014 for
testing. kdx reads it from a folder in either of two forms. One has `train.en`, `train.de` and `newstest2013.*`,
`newstest2014.*` (or `valid.*`, `test.*`) in one folder for each direction. The other has the contents of the campaign's
archives in any folders: the training pieces, which are concatenated in alphabetical order, and the test sets with their
`<seg>` marks. The text counts as tokenised only if the user says so.
"""

from functools import partial
from pathlib import PurePosixPath

from kdx.data.text import Files, KnownFile, KnownText, Original, Progress, TextFile, file_names
from kdx.data.text_files import joined, segments, text_of_lines
from kdx.errors import KdxError

# Target → training pairs as published, the campaign's name of the pair, its training pieces.
_PAIRS = {
    "de": (4_500_000, "de-en", ("commoncrawl.de-en", "europarl-v7.de-en", "news-commentary-v9.de-en")),
    "fr": (
        36_000_000,
        "fr-en",
        (
            "commoncrawl.fr-en",
            "europarl-v7.fr-en",
            "giga-fren.release2.fixed",
            "news-commentary-v9.fr-en",
            "undoc.2000.fr-en",
        ),
    ),
}


def make(target: str, files: Files, progress: Progress) -> Original | None:
    """Make English to `target` from the campaign's files; None if no training piece is among `files`.

    Raises:
        KdxError: the other side of a piece, or a test set, is missing.
    """
    _, pair, pieces = _PAIRS[target]
    suffixes = ("en", target)
    named = {path.name: text for path, text in files.items()}
    present = [piece for piece in pieces if any(f"{piece}.{suffix}" in named for suffix in suffixes)]
    if not present:
        return None
    texts: dict[str, TextFile] = {}
    test = f"newstest2014-{pair.replace('-', '')}"
    for suffix, side in zip(suffixes, ("src", "ref"), strict=True):
        texts[f"train.{suffix}"] = joined([_named(named, f"{piece}.{suffix}") for piece in present])
        texts[f"valid.{suffix}"] = _set(named, f"newstest2013.{suffix}", f"newstest2013-{side}.{suffix}.sgm")
        texts[f"test.{suffix}"] = _set(named, f"{test}.{suffix}", f"{test}-{side}.{suffix}.sgm")
    return Original({name: texts[name] for name in file_names(suffixes)})


def _set(named: dict[str, TextFile], plain: str, marked: str) -> TextFile:
    if plain in named:
        return named[plain]
    text = _named(named, marked)
    return text_of_lines(text.place, list(segments(text)))


def _named(named: dict[str, TextFile], name: str) -> TextFile:
    if name not in named:
        raise KdxError(f"of the campaign's files is missing: {name}")
    return named[name]


def _text(target: str) -> KnownText:
    pairs, _, _ = _PAIRS[target]
    suffixes = ("en", target)
    counts = {"train": pairs, "valid": 3000, "test": 3003}
    files = {
        name: KnownFile(counts[split := PurePosixPath(name).stem], about=split == "train")
        for name in file_names(suffixes)
    }
    return KnownText(
        suffixes=suffixes,
        folder=f"en-{target}",
        licence="as the campaign states it: research use",
        tokenised=False,
        files=files,
        by_hand="its parts are at https://www.statmt.org/wmt14/translation-task.html",
        exact=False,
        names={
            f"{news}.{language}": f"{split}.{language}"
            for news, split in (("newstest2013", "valid"), ("newstest2014", "test"))
            for language in suffixes
        },
        original=partial(make, target),
    )


EN_DE, EN_FR = map(_text, _PAIRS)
