"""Tatoeba, German to English: short sentences that volunteers wrote and translated, raw and cased.

CC BY 2.0 (France), tatoeba.org by way of manythings.org/anki: the export of 13 May 2018, which the address keeps. The
published file has one pair a line, English first, and no splits. Here a sentence's hash decides: 3 in 100 English
sentences are validation text, 3 are test text, with all their translations; a pair whose German sentence is in a text
that is evaluated is not trained on, and one that is in both is tested alone. Pairs are in an order by hash, since the
published order is by length.
"""

import hashlib

from kdx.data.text import Files, KnownFile, KnownText, Original, Progress, file_names
from kdx.data.text_files import text_of_lines
from kdx.errors import KdxError
from kdx.vocabulary import Split

_LANGUAGES = ("de", "en")
_PUBLISHED = "deu.txt"


def make(files: Files, progress: Progress) -> Original | None:
    """Make the six texts from the published file; None if it is not there.

    Raises:
        KdxError: a line is not an English and a German sentence with a tab between them.
    """
    text = next((text for path, text in files.items() if path.name == _PUBLISHED), None)
    if text is None:
        return None
    pairs: dict[Split, list[tuple[str, str]]] = {split: [] for split in Split}
    for number, line in enumerate(text.decoded(), 1):
        english, tab, german = line.partition("\t")
        if not tab or "\t" in german:
            raise KdxError(f"line {number:,} is not an English and a German sentence", place=text.place)
        percent = _hash(english) % 100
        split = Split.TEST if percent < 3 else Split.VALID if percent < 6 else Split.TRAIN
        pairs[split].append((german, english))
    evaluated: set[str] = set()
    texts = {}
    for split in (Split.TEST, Split.VALID, Split.TRAIN):
        kept = sorted(
            (pair for pair in pairs[split] if pair[0] not in evaluated), key=lambda pair: _hash("\t".join(pair))
        )
        evaluated |= {german for german, _ in kept}
        for side, language in enumerate(_LANGUAGES):
            texts[f"{split}.{language}"] = text_of_lines(text.place, [pair[side] for pair in kept])
    return Original({name: texts[name] for name in file_names(_LANGUAGES)})


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


TEXT = KnownText(
    suffixes=_LANGUAGES,
    folder="deu-eng",
    licence="CC BY 2.0 FR, tatoeba.org and manythings.org/anki",
    tokenised=False,
    address="https://github.com/rioyshky/translation/raw/de48b7027f7318d77010a6e08ed928c10748c23d/deu-eng.zip",
    archive_sha256="b7688f84f99fa33c17397c14d8bd9cef1fdeb2ee0bf50074767023aee8926e28",
    files={
        "train.de": KnownFile(157963, "646491335954f08cdc6f662d87c4352287b3f70197d814dd4d16890b4536294f"),
        "train.en": KnownFile(157963, "29a0b67ba9ea8fa30d1675b953dbeb6508f04027ab2843e9dc4474f84e05f560"),
        "valid.de": KnownFile(5138, "87bae22180c645f68ac57f1e84e6e6b8af05eaf91577c82ff3884b795c7240c2"),
        "valid.en": KnownFile(5138, "3fafc1171bbf51d84e2ffef856f1f9601e69210bbc72fba60a8b802abefbe1e5"),
        "test.de": KnownFile(5115, "aaf2f541dd1821cf588e21548516e9b64da3e6f9f2dc9836cbfc48c442e5853d"),
        "test.en": KnownFile(5115, "b30873896a87461b23b1adb474914a3677d33cea1544be299c817edad2b851cb"),
    },
    original=make,
)
