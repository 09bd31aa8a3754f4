"""WikiText-2 (Merity et al. 2017): articles of Wikipedia, word level, rare words already written `<unk>`.

With one end token for each line, even an empty one, it has the usual 2,088,628 / 217,646 / 245,569 tokens. The address
is Stephen Merity's own; the address in older programs no longer works.
"""

from kdx.data.text import PLAIN, KnownFile, KnownText
from kdx.vocabulary import Split

NAMES = {f"wiki.{split}.tokens": f"{split}.txt" for split in Split}
LICENCE = "CC BY-SA, text of Wikipedia"
TITLE = "= [^=](.*[^=])? ="
"""The first line of an article; headings within it have more `=`. Each held-out text has 60 such lines after an empty
line, one for each of its 60 articles."""

TEXT = KnownText(
    suffixes=PLAIN,
    folder="wikitext2",
    licence=LICENCE,
    tokenised=True,
    address="https://wikitext.smerity.com/wikitext-2-v1.zip",
    archive_sha256="92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
    names=NAMES,
    title=TITLE,
    files={
        "train.txt": KnownFile(
            36718, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f", words=2_051_910
        ),
        "valid.txt": KnownFile(3760, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8", words=213_886),
        "test.txt": KnownFile(4358, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0", words=241_211),
    },
)
