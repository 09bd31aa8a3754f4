from kdx.data import multi30k
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
