"""WikiText-103 (Merity et al. 2017): WikiText-2's form with fifty times its training text.

With one end token for each line, it has the usual 103,227,021 / 217,646 / 245,569 tokens. Validation and
test are the articles of WikiText-2, line for line and word for word, but not byte for byte: fewer words are rare in the
larger training text, so fewer are written `<unk>`.
"""

from kdx.data.corpora.wikitext2 import LICENCE, NAMES, TITLE
from kdx.data.text import PLAIN, KnownFile, KnownText

TEXT = KnownText(
    suffixes=PLAIN,
    folder="wikitext103",
    licence=LICENCE,
    tokenised=True,
    address="https://wikitext.smerity.com/wikitext-103-v1.zip",
    archive_sha256="242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
    names=NAMES,
    title=TITLE,
    files={
        "train.txt": KnownFile(1_801_350, words=101_425_671),
        "valid.txt": KnownFile(3760, words=213_886),
        "test.txt": KnownFile(4358, words=241_211),
    },
)
