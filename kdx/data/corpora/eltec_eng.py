"""ELTeC-eng 1.0.1 (Burnard 2021): 99 English novels of 1840 to 1920, of the European Literary Text Collection.

Both are free to pass on: the novels are in the public domain, their mark-up is CC BY 4.0. The address is the editors'
repository at that release. A line is a heading, a paragraph or a line of verse; words and punctuation are separated,
capitals kept. Validation and test text are four novels each, one of each of the
collection's four periods, by authors of whom the collection has no other. The training novels are in an order by hash,
so that the first lines, too, are of all periods. Reynolds's `Mysteries of London`, more than twice as long as any
other, is left out.
"""

import hashlib
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from kdx.data.text import PLAIN, Files, KnownFile, KnownText, Original, Progress, TextFile
from kdx.data.text_files import text_of_lines
from kdx.errors import KdxError
from kdx.vocabulary import Split

_HELD_OUT = {
    **dict.fromkeys(("ENG18500_Ainsworth", "ENG18600_Clive", "ENG18940_Dixon", "ENG19001_Glyn"), Split.VALID),
    **dict.fromkeys(("ENG18552_Kavanagh", "ENG18700_Oliphant", "ENG18960_Malet", "ENG19080_Chesterton"), Split.TEST),
}
_LEFT_OUT = "ENG18460_Reynolds"
_NOVELS = 99
_TEI = "{http://www.tei-c.org/ns/1.0}"
_HEADING = f"{_TEI}head"
_LINES = {f"{_TEI}{name}" for name in ("head", "p", "l", "label", "trailer")}
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def make(files: Files, progress: Progress) -> Original | None:
    """Make the three texts from the collection's XML files; None if there are none.

    Raises:
        KdxError: a novel is missing, or a file is not XML.
    """
    novels = {
        path.stem: text
        for path, text in files.items()
        if path.parent.name == "level1" and path.suffix == ".xml" and path.stem != _LEFT_OUT
    }
    if not novels:
        return None
    if len(novels) != _NOVELS:
        raise KdxError(f"{len(novels)} novels in level1, not the {_NOVELS} of release 1.0.1")
    lines: dict[Split, list[str]] = {split: [] for split in Split}
    for done, name in enumerate(sorted(novels, key=lambda name: hashlib.sha256(name.encode()).digest())):
        progress("reading novels", done, _NOVELS)
        lines[_HELD_OUT.get(name, Split.TRAIN)] += _novel(novels[name])
    place = next(iter(novels.values())).place
    return Original({f"{split}.{PLAIN[0]}": text_of_lines(place, lines[split]) for split in Split})


def _novel(text: TextFile) -> Iterator[str]:
    try:
        root = ElementTree.fromstring(b"".join(text.lines()))
    except ElementTree.ParseError as error:
        raise KdxError(f"not XML: {error}", place=text.place) from error
    heading = ""
    for element in (element for body in root.iter(f"{_TEI}body") for element in _outermost(body)):
        words = " ".join(_WORD.findall("".join(element.itertext())))
        if element.tag == _HEADING:
            # A chapter has its number and its name in two headings.
            heading = f"{heading} {words}".strip()
        elif words:
            if heading:
                yield f"= {heading} ="
            heading = ""
            yield words


def _outermost(element: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield the elements that become lines, but for those inside of others."""
    for child in element:
        if child.tag in _LINES:
            yield child
        else:
            yield from _outermost(child)


TEXT = KnownText(
    suffixes=PLAIN,
    folder="level1",
    licence="public domain; mark-up CC BY 4.0",
    tokenised=True,
    address="https://github.com/COST-ELTeC/ELTeC-eng/archive/3db3b6738a836f0e1b276b6c9703e42f4297f978.tar.gz",
    files={
        "train.txt": KnownFile(
            210207, "d33ec49c7b8b21f003b8477ba915252ddcdd81167f7812106e7429efdf6aba94", words=13_154_795
        ),
        "valid.txt": KnownFile(4353, "8e2cce30e7486db6351438d6d52cff755f36a42da2826a3f9d4bbd601b11c1cb", words=259_028),
        "test.txt": KnownFile(4446, "79ee3760282b28b01bf67c4d59a8d3a931dbbcbc339a46e28aa1508065f8f6b1", words=288_112),
    },
    original=make,
)
