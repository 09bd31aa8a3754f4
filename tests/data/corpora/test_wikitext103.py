import zipfile

import pytest

from kdx.data.corpora import wikitext2, wikitext103
from kdx.data.prepare import prepare
from kdx.data.text import file_names
from kdx.errors import KdxError


def test_every_file_is_known():
    assert list(wikitext103.TEXT.files) == file_names(wikitext103.TEXT.suffixes)


def test_counts_are_the_published_ones():
    """With an end mark a line. Validation and test are WikiText-2's articles, so they have its counts."""
    files = wikitext103.TEXT.files
    assert files["train.txt"].words + files["train.txt"].lines == 103_227_021
    assert files["valid.txt"].words + files["valid.txt"].lines == 217_646
    assert files["test.txt"].words + files["test.txt"].lines == 245_569
    for name in ("valid.txt", "test.txt"):
        assert files[name].lines == wikitext2.TEXT.files[name].lines


def test_another_text_is_refused_by_its_counts(tmp_path, home):
    source = tmp_path / "wikitext-103-v1.zip"
    with zipfile.ZipFile(source, "w") as archive:
        for split in ("train", "valid", "test"):
            archive.writestr(f"wikitext-103/wiki.{split}.tokens", " \n = A title = \n \n a <unk> b \n")
    with pytest.raises(KdxError) as caught:
        prepare("wikitext103", source)
    assert str(caught.value).startswith(
        f"{source}/wikitext-103/wiki.train.tokens: not the train.txt of wikitext103: 4 lines instead of 1,801,350,"
        " 7 words instead of 101,425,671\n"
    )
    assert not list(home.glob("corpora/*"))
