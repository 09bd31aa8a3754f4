import io
import tarfile

import pytest

from kdx.data.prepare import prepare
from kdx.data.prepared import corpus_folder
from kdx.errors import KdxError

TALKS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")


def talk(number: int, lines: list[str]) -> list[str]:
    """Return the lines of a talk as the training text has them."""
    return [
        f"<url>http://www.ted.com/talks/{number}</url>",
        "<keywords>talks, science</keywords>",
        f"<talkid>{number}</talkid>",
        f"<title>Title {number}!</title>",
        f"<description>About {number}.</description>",
        *(f" {line} " for line in lines),
    ]


def marked(lines: list[str]) -> str:
    """Return lines as a test set has them."""
    segments = "".join(f'<seg id="{number}"> {line} </seg>\n' for number, line in enumerate(lines, 1))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<doc docid="1">\n<title>Not heard</title>\n{segments}</doc>\n'


def original(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The files of the campaign's archive, with these pairs and ten test pairs."""
    files = {}
    for side, language in enumerate(("de", "en")):
        lines = [
            line for start in range(0, len(pairs), 20) for line in talk(start, [p[side] for p in pairs[start:][:20]])
        ]
        files[f"de-en/train.tags.de-en.{language}"] = "\n".join(lines) + "\n"
        for place, name in enumerate(TALKS):
            texts = [f"Satz {place}, der ERSTE.", f"It’s {place}."] if side else [f"Satz {place}.", f"Es ist {place}."]
            files[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = marked(texts)
    return files | {"de-en/README": "", "de-en/IWSLT14.TED.tst2013.en-de.en.xml": marked(["another direction"])}


def packed(path, files) -> str:
    with tarfile.open(path / "de-en.tgz", "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path / "de-en.tgz"


PAIRS = [(f"Das ist Nummer {number}, ja.", f"This is number {number}, yes.") for number in range(60)]


def read(name: str) -> list[str]:
    return (corpus_folder("iwslt14") / name).read_text().split("\n")[:-1]


def test_the_original_archive_becomes_the_usual_text(tmp_path, home):
    about = prepare("iwslt14", packed(tmp_path, original(PAIRS)))
    spoken = []
    for start in range(0, 60, 20):
        spoken += [f"title {start} !", f"about {start} ."]
        spoken += [f"this is number {number} , yes ." for number in range(start, start + 20)]
    assert read("valid.en") == spoken[22::23]
    assert read("train.en") == [line for number, line in enumerate(spoken, 1) if number % 23]
    assert read("train.de")[2] == "das ist nummer 0 , ja ."
    assert about.tokenised and about.suffixes == ("de", "en")
    assert len(read("train.en")) == 64 and len(read("valid.de")) == 2


def test_test_text_is_the_five_sets_in_their_order(tmp_path, home):
    prepare("iwslt14", packed(tmp_path, original(PAIRS)))
    assert read("test.de") == [line for place in range(5) for line in (f"satz {place} .", f"es ist {place} .")]
    # The typographic apostrophe is one like any other.
    assert read("test.en")[:2] == ["satz 0 , der erste .", "it &apos;s 0 ."]


LEFT_OUT = {
    "no German": ("", "A line."),
    "no English": ("Eine Zeile.", " "),
    "176 words": ("x " * 175 + ".", "x " * 175 + "."),
    "more than 1.5 times as long": ("Ein Satz .", "A sentence that is long"),
}
KEPT = {
    "175 words": ("x " * 174 + ".", "x " * 174 + "."),
    "1.5 times as long": ("Ein Satz", "A longer sentence"),
    "one word": ("Ja", "Yes"),
}


@pytest.mark.parametrize(("pair", "kept"), [(p, 0) for p in LEFT_OUT.values()] + [(p, 1) for p in KEPT.values()])
def test_pairs_that_do_not_fit_are_left_out(tmp_path, home, pair, kept):
    about = prepare("iwslt14", packed(tmp_path, original([*PAIRS, pair])))
    # 60 pairs in 3 talks and this one in a fourth, each with a title and a description; the 69th is for validation.
    assert (about.files["train.de"].lines, about.files["valid.de"].lines) == (66, 2 + kept)


def raw(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Six files of text as it is written."""
    texts = {"train": pairs, "valid": [("Ein „Satz“, ja?", "A sentence, yes?")], "test": [("Ist das gut?", "It's OK.")]}
    return {
        f"{split}.{language}": "".join(f"{pair[side]}\n" for pair in text)
        for split, text in texts.items()
        for side, language in enumerate(("de", "en"))
    }


def test_raw_text_is_tokenised_cleaned_and_lower_cased(write, home):
    about = prepare("iwslt14", write(raw([*PAIRS, *LEFT_OUT.values()])))
    assert read("train.de") == [f"das ist nummer {number} , ja ." for number in range(60)]
    assert read("train.en")[59] == "this is number 59 , yes ."
    assert (read("valid.de"), read("valid.en")) == (["ein „ satz “ , ja ?"], ["a sentence , yes ?"])
    assert read("test.en") == ["it &apos;s ok ."]
    assert about.tokenised
    assert (
        "train.de, train.en: raw text, which kdx has tokenised, cleaned (of 64 pairs 60 stay) and lower-cased"
        in about.notes
    )
    assert "test.de, test.en: raw text, which kdx has tokenised and lower-cased" in about.notes


def test_a_missing_talk_is_named(tmp_path, home):
    files = original(PAIRS)
    del files["de-en/IWSLT14.TED.tst2011.de-en.en.xml"], files["de-en/train.tags.de-en.de"]
    source = packed(tmp_path, files)
    with pytest.raises(KdxError) as caught:
        prepare("iwslt14", source)
    assert str(caught.value) == (
        f"{source}: of the original archive are missing: train.tags.de-en.de, IWSLT14.TED.tst2011.de-en.en.xml"
    )


def test_sides_that_differ_are_refused(tmp_path, home):
    files = original(PAIRS)
    files["de-en/train.tags.de-en.en"] += "One more.\n"
    source = packed(tmp_path, files)
    with pytest.raises(KdxError) as caught:
        prepare("iwslt14", source)
    assert str(caught.value) == (
        f"{source}/de-en/train.tags.de-en.en: 67 lines of text, but 66 in {source}/de-en/train.tags.de-en.de;"
        " line by line they must match"
    )
    assert not list(home.glob("corpora/*"))


@pytest.mark.slow
def test_a_subset_that_is_tokenised_is_taken_as_it_is_and_noted(shared, home):
    about = prepare("iwslt14", shared / "data" / "iwslt14.tar.xz")
    assert about.notes == tuple(f"train.{language}: 38,592 lines instead of 160,239" for language in ("de", "en"))
