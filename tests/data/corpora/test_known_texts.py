"""The published texts whose files kdx knows: the archives of their authors, and their counts."""

import tarfile
import zipfile
from collections.abc import Mapping

import pytest

from kdx.data.corpora import multi30k
from kdx.data.prepare import prepare
from kdx.data.prepared import PreparedInfo
from kdx.data.stream import load_stream
from kdx.data.text import KnownText, file_names
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Split


def test_every_file_of_a_known_text_is_known():
    for name, text in BUILT_IN.items():
        if isinstance(text, KnownText):
            assert list(text.files) == file_names(text.suffixes), name


def counts(files: Mapping[str, object], *facts: str) -> dict[str, tuple]:
    return {name: tuple(getattr(file, fact) for fact in facts) for name, file in files.items()}


def check_multi30k(about: PreparedInfo) -> None:
    assert counts(about.files, "lines", "sha256") == counts(multi30k.TEXT.files, "lines", "sha256")
    assert about.suffixes == ("de", "en") and about.tokenised
    assert about.files["train.en"].words == 377534 and not about.notes


def test_multi30k_is_known_by_its_usual_names_and_by_those_of_its_authors(shared, home, write):
    """The archive of the address has other names and more languages."""
    with tarfile.open(shared / "data" / "multi30k.tar.xz") as archive:
        files = {
            f"dataset/data/task1/tok/{published}.lc.norm.tok.{language}": archive.extractfile(
                f"multi30k/tok/{split}.{language}"
            ).read()
            for published, split in (("train", "train"), ("val", "valid"), ("test_2016_flickr", "test"))
            for language in ("de", "en")
        }
    others = {"dataset/data/task1/tok/train.lc.norm.tok.fr": "x\n", "dataset/data/task1/raw/train.de.gz": b"\x1f\x8b"}
    check_multi30k(prepare("multi30k", shared / "data" / "multi30k.tar.xz", home))
    check_multi30k(prepare("multi30k", write(files | others), home / "other"))


@pytest.mark.slow
def test_wikitext2_has_the_usual_number_of_tokens(shared, home):
    prepare("wikitext2", shared / "data" / "wikitext2.tar.xz", home)
    corpus = load_stream(Data(corpus="wikitext2"), home)
    usual = {Split.TRAIN: 2_088_628, Split.VALID: 217_646, Split.TEST: 245_569}
    assert {split: len(stream) for split, stream in corpus.splits.items()} == usual
    assert corpus.words == usual
    # 33,278 words with the text's own `<unk>` and `<eos>`, here unknown and end; padding and begin come on top.
    assert corpus.vocabulary.size == 33_278 + 2
    assert 6 < corpus.unigram_loss < 7


def test_another_text_than_wikitext103_is_refused_by_its_counts(tmp_path, home):
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
