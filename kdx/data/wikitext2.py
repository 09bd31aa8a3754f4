"""WikiText-2 (Merity et al. 2017): articles of Wikipedia, word level, rare words already written `<unk>`.

With one end token a line, empty lines included, it has the usual 2,088,628 / 217,646 / 245,569 tokens.
"""

from kdx.data.text import PLAIN, KnownFile, KnownText

TEXT = KnownText(
    suffixes=PLAIN,
    folder="wikitext2",
    licence="CC BY-SA, text of Wikipedia",
    tokenised=True,
    files={
        "train.txt": KnownFile(36718, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"),
        "valid.txt": KnownFile(3760, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
        "test.txt": KnownFile(4358, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
    },
)
