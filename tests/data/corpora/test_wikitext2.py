import tarfile
import zipfile

import pytest

from kdx.data.corpora import wikitext2
from kdx.data.prepare import prepare
from kdx.data.stream import load_stream
from kdx.data.text import file_names
from kdx.grid.sections import Data
from kdx.vocabulary import Split


def test_every_file_is_known():
    assert list(wikitext2.TEXT.files) == file_names(wikitext2.TEXT.suffixes)


@pytest.mark.slow
def test_archive_has_the_usual_number_of_tokens(shared, home):
    prepare("wikitext2", shared / "data" / "wikitext2.tar.xz", home)
    corpus = load_stream(Data(corpus="wikitext2"), home)
    usual = {Split.TRAIN: 2_088_628, Split.VALID: 217_646, Split.TEST: 245_569}
    assert {split: len(stream) for split, stream in corpus.splits.items()} == usual
    assert corpus.words == usual
    # 33,278 words with the text's own `<unk>` and `<eos>`, here unknown and end; padding and begin come on top.
    assert corpus.vocabulary.size == 33_278 + 2
    assert 6 < corpus.unigram_loss < 7


@pytest.mark.slow
def test_the_authors_own_archive_is_known(shared, home, tmp_path):
    source = tmp_path / "wikitext-2-v1.zip"
    with (
        tarfile.open(shared / "data" / "wikitext2.tar.xz") as archive,
        zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as published,
    ):
        for split in Split:
            text = archive.extractfile(f"wikitext2/{split}.txt").read()
            published.writestr(f"wikitext-2/wiki.{split}.tokens", text)
    about = prepare("wikitext2", source, home)
    assert {name: (file.lines, file.words) for name, file in about.files.items()} == {
        name: (file.lines, file.words) for name, file in wikitext2.TEXT.files.items()
    }
