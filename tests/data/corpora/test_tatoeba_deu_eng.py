import tarfile

import pytest

from kdx.data.corpora import tatoeba_deu_eng
from kdx.data.prepare import prepare
from kdx.data.prepared import corpus_folder
from kdx.data.text import TextFile, no_progress
from kdx.errors import KdxError


def published(shared) -> str:
    """The pairs of a split copy of the export, one a line, in another order than the export's."""
    pairs = []
    with tarfile.open(shared / "data" / "tatoeba-deu-eng.tar.xz") as archive:
        for split in ("train", "valid", "test"):
            german, english = (
                archive.extractfile(f"tatoeba-deu-eng/{split}.{language}").read().decode().splitlines()
                for language in ("de", "en")
            )
            pairs += [f"{there}\t{here}\n" for here, there in zip(german, english, strict=True)]
    return "".join(pairs)


def test_the_export_becomes_the_known_text_whatever_its_order(write, shared):
    about = prepare("tatoeba-deu-eng", write({"deu.txt": published(shared)}))
    assert about.notes == () and about.licence == "CC BY 2.0 FR, tatoeba.org and manythings.org/anki"
    sentences = {
        split: [
            set((corpus_folder(about.name) / f"{split}.{language}").read_text().splitlines())
            for language in ("de", "en")
        ]
        for split in ("train", "valid", "test")
    }
    for first, second in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not any(map(set.intersection, sentences[first], sentences[second]))


@pytest.mark.parametrize("line", ["Hello.", "Hello.\tHallo.\tCC BY"])
def test_a_line_that_is_no_pair_is_refused(write, line):
    with pytest.raises(KdxError, match="line 2 is not an English and a German sentence"):
        prepare("tatoeba-deu-eng", write({"deu.txt": f"Hi.\tHallo!\n{line}\n"}))


def test_other_files_are_no_export(tmp_path):
    text = TextFile("x", lambda: iter(()))
    assert tatoeba_deu_eng.make({tmp_path / "train.de": text}, no_progress) is None
