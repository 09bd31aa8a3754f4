from pathlib import PurePosixPath

import pytest

from kdx.data.corpora import eltec_eng
from kdx.data.text import TextFile, no_progress
from kdx.errors import KdxError

HELD_OUT = [*eltec_eng._HELD_OUT]
NOVEL = """<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><title>Not in the text</title></teiHeader><text><body>
<div><head>CHAPTER I.</head><head>Of {name}</head><p>“It's a <hi>half-way</hi>
  house,” he said.</p><quote><l>A verse</l></quote><p/></div>
<div><head>II</head><p>The end.</p></div></body></text></TEI>
"""


def collection(**other: str) -> dict[PurePosixPath, TextFile]:
    """As many novels as the collection has, in the folders of its archive, and the one that is left out."""
    names = [*HELD_OUT, "ENG18460_Reynolds", *(f"ENG{number}_Somebody" for number in range(99 - len(HELD_OUT)))]
    texts = {name: other.get(name, NOVEL.format(name=name)) for name in names}
    return {
        PurePosixPath(f"ELTeC-eng-1/level1/{name}.xml"): TextFile(name, lambda text=text: iter([text.encode()]))
        for name, text in texts.items()
    }


def lines(files: dict[PurePosixPath, TextFile], name: str) -> list[str]:
    made = eltec_eng.make(files, no_progress)
    assert made is not None
    return [*made.texts[name].decoded()]


def test_a_novel_is_its_headings_paragraphs_and_verses_in_separate_words():
    novels = lines(collection(), "valid.txt")
    start = next(number for number, line in enumerate(novels) if "Clive" in line)
    assert novels[start : start + 5] == [
        "= CHAPTER I . Of ENG18600_Clive =",
        "“ It's a half-way house , ” he said .",
        "A verse",
        "= II =",
        "The end .",
    ]


def test_each_novel_is_in_one_text():
    files = collection()
    titles = {
        name: {line for line in lines(files, name) if "Of ENG" in line}
        for name in ("train.txt", "valid.txt", "test.txt")
    }
    assert {name: len(of_text) for name, of_text in titles.items()} == {"train.txt": 91, "valid.txt": 4, "test.txt": 4}
    assert not any("Reynolds" in title for of_text in titles.values() for title in of_text)


def test_the_first_training_lines_do_not_depend_on_the_order_of_the_archive():
    files = collection()
    assert lines(dict(reversed(files.items())), "train.txt") == lines(files, "train.txt")


def test_a_novel_that_is_missing_and_a_file_that_is_no_xml_are_refused():
    files = collection()
    del files[PurePosixPath("ELTeC-eng-1/level1/ENG0_Somebody.xml")]
    with pytest.raises(KdxError, match="98 novels in level1, not the 99 of release"):
        eltec_eng.make(files, no_progress)
    with pytest.raises(KdxError, match="not XML") as refused:
        eltec_eng.make(collection(ENG0_Somebody="<TEI>"), no_progress)
    assert refused.value.place == "ENG0_Somebody"


def test_other_files_are_no_collection():
    assert eltec_eng.make({}, no_progress) is None
