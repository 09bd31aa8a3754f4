import tarfile

from kdx.data.corpora import multi30k
from kdx.data.prepare import prepare
from kdx.data.text import file_names


def test_every_file_is_known():
    assert list(multi30k.TEXT.files) == file_names(multi30k.TEXT.suffixes)


def test_archive_is_what_is_known_of_it(shared, home):
    about = prepare("multi30k", shared / "data" / "multi30k.tar.xz", home)
    assert {name: (file.lines, file.sha256) for name, file in about.files.items()} == {
        name: (file.lines, file.sha256) for name, file in multi30k.TEXT.files.items()
    }
    assert about.suffixes == ("de", "en")
    assert about.tokenised
    assert about.files["train.en"].words == 377534


def test_the_authors_own_names_are_known(shared, home, write):
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
    about = prepare("multi30k", write(files | others), home)
    assert about.files["train.en"].words == 377534 and not about.notes
