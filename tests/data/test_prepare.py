import dataclasses
import errno
import hashlib
import json
import os

import pytest

from kdx.data import BUILT_IN
from kdx.data.prepare import FileInfo, corpus_folder, prepare, prepared_corpora, read_about
from kdx.data.text import KnownFile, KnownText
from kdx.errors import KdxError, StorageError


def refusal(name, source) -> str:
    with pytest.raises(KdxError) as caught:
        prepare(name, source)
    return str(caught.value)


def entries(home):
    """Every path below the home, hidden ones too, so that nothing half-written goes unseen."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_text_is_copied_and_told(pairs, home):
    about = prepare("pets", pairs)
    folder = corpus_folder("pets")
    assert folder == home / "corpora" / "pets"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "about.json"} == {
        path.name: path.read_bytes() for path in pairs.iterdir()
    }
    assert about.suffixes == ("de", "en")
    assert (about.source, about.licence, about.tokenised) == (str(pairs), None, False)
    sha256 = hashlib.sha256((pairs / "train.de").read_bytes()).hexdigest()
    assert about.files["train.de"] == FileInfo(lines=3, words=8, sha256=sha256)
    assert read_about(folder) == about
    assert prepared_corpora() == [about]


def test_lines_end_at_line_feeds_only(write):
    files = {"train.txt": "a\u2028b\x85c\x0cd\r\ne", "valid.txt": "a", "test.txt": "a\n"}
    about = prepare("odd", write(files))
    assert {name: file.lines for name, file in about.files.items()} == {"train.txt": 2, "valid.txt": 1, "test.txt": 1}


def test_preparing_again_changes_nothing(pairs, home):
    about = prepare("pets", pairs)
    before = entries(home)
    assert prepare("pets", pairs) == about
    assert entries(home) == before


def test_another_text_does_not_take_the_name(pairs, plain, home):
    prepare("pets", pairs)
    before = entries(home)
    assert refusal("pets", plain) == (
        f"corpus `pets` is already there with another text, prepared from {pairs}\n"
        f"  hint: take another name, or remove {home}/corpora/pets"
    )
    assert entries(home) == before


def test_a_foreign_folder_is_not_touched(pairs, home):
    (home / "corpora" / "pets").mkdir(parents=True)
    assert refusal("pets", pairs).startswith(
        f"{home}/corpora/pets: something else than a prepared corpus is in the way"
    )


def test_two_corpora_are_listed_by_name(pairs, plain):
    prepare("b", plain)
    prepare("a", pairs)
    assert [about.name for about in prepared_corpora()] == ["a", "b"]


FAULTS = {
    "unequal sides": (
        {"train.en": "one\ntwo\n"},
        "train.en: 2 lines, but train.de has 3; line by line they must match",
    ),
    "empty file": ({"valid.en": ""}, "valid.en: no words in it"),
    "blank file": ({"test.de": " \n\n\t\n"}, "test.de: no words in it"),
    "bad utf-8": ({"train.de": "ja\nnün, ".encode() + b"\xe4h\nx\n"}, "train.de:2:6: not UTF-8: byte 0xe4"),
    "utf-16": ({"train.de": "der hund\n".encode("utf-16")}, "train.de:1:1: not UTF-8: byte 0xff"),
}


@pytest.mark.parametrize(("changed", "message"), FAULTS.values(), ids=FAULTS)
def test_faulty_text_is_refused_at_its_place(pairs, write, home, changed, message):
    write(changed)
    assert refusal("pets", pairs) == f"{pairs}/{message}"
    assert not [name for name in entries(home) if name != "corpora"]


def test_missing_split(pairs, home):
    (pairs / "valid.de").unlink()
    assert f"{pairs}: missing: valid.de" in refusal("pets", pairs)
    assert not home.exists()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "-rf", "a b", "x" * 65, "é"])
def test_names_that_are_no_names(pairs, name, home):
    assert refusal(name, pairs).startswith(f"`{name}` cannot name a corpus\n  allowed: ")
    assert not home.exists()


@pytest.mark.parametrize("name", ["synthetic-language", "synthetic-images"])
def test_generated_corpora_are_not_prepared(pairs, name):
    message = f"corpus `{name}` is generated: there is nothing to prepare\n  hint: use it as it is"
    assert refusal(name, pairs) == message


@pytest.fixture
def known(monkeypatch, pairs):
    """A corpus `pets` of which kdx knows every file."""
    files = {
        path.name: KnownFile(path.read_bytes().count(b"\n"), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(pairs.iterdir())
    }
    text = KnownText(suffixes=("de", "en"), folder="tok", licence="free", tokenised=True, files=files)
    monkeypatch.setitem(BUILT_IN, "pets", text)
    return text


def test_what_is_known_of_a_corpus_is_told(known, pairs):
    about = prepare("pets", pairs)
    assert (about.licence, about.tokenised) == ("free", True)


def test_a_known_corpus_with_too_few_lines(known, pairs, write):
    write({"test.de": "der hund\n", "test.en": "the dog\n"})
    found = hashlib.sha256(b"der hund\n").hexdigest()
    assert refusal("pets", pairs) == (
        f"{pairs}/test.de: not the test.de of pets: 1 lines instead of 2,"
        f" sha256 {found[:12]}… instead of {known.files['test.de'].sha256[:12]}…\n"
        "  hint: to use it all the same, prepare it under another name"
    )
    assert prepare("my-pets", pairs).licence is None


def test_a_known_corpus_with_another_text(known, pairs, write):
    write({"test.de": "der hund\ndie laus\n"})
    assert ": not the test.de of pets: other text, sha256 " in refusal("pets", pairs)


def test_full_disk_leaves_nothing(pairs, home, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        prepare("pets", pairs)
    assert caught.value.exit_code == 74
    assert entries(home) == ["corpora"]


def test_interrupted_copy_leaves_nothing(pairs, home, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kdx.data.prepare._check_sides", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare("pets", pairs)
    assert entries(home) == ["corpora"]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"name": "pets"}', '{"files": {"train.de": 3}}'])
def test_damaged_about_is_told(pairs, damage):
    prepare("pets", pairs)
    path = corpus_folder("pets") / "about.json"
    path.write_text(damage)
    with pytest.raises(KdxError) as caught:
        read_about(path.parent)
    assert str(caught.value).startswith(f"{path}: this does not tell what corpus it is: ")
    assert caught.value.hint == f"remove {path.parent} and prepare the corpus again"


def test_about_is_plain_json(pairs):
    about = prepare("pets", pairs)
    told = json.loads((corpus_folder("pets") / "about.json").read_text())
    assert told == {**dataclasses.asdict(about), "suffixes": ["de", "en"]}


def test_nothing_prepared_in_a_home_that_is_not_there(home):
    assert prepared_corpora() == []
    assert read_about(home / "corpora" / "x") is None
