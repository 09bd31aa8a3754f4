import dataclasses
import errno
import hashlib
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from kdx.data.prepare import prepare
from kdx.data.prepared import FileInfo, corpus_folder, how_to_prepare, prepared_corpora, read_about
from kdx.data.text import KnownFile, KnownText
from kdx.errors import KdxError, StorageError
from kdx.tasks.corpora import BUILT_IN


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
    assert about.files["train.de"] == FileInfo(lines=3, words=8, sha256=sha256, empty=0)
    assert read_about(folder) == about
    assert prepared_corpora() == [about]


def test_lines_end_at_line_feeds_only(write):
    files = {"train.txt": "a\u2028b\x85c\x0cd\r\ne", "valid.txt": "a", "test.txt": "a\n"}
    about = prepare("odd", write(files))
    assert {name: file.lines for name, file in about.files.items()} == {"train.txt": 2, "valid.txt": 1, "test.txt": 1}


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


FAULTS = {
    "unequal sides": (
        {"train.en": "one\ntwo\n"},
        "train.en: 2 lines, but train.de has 3; line by line they must match",
    ),
    "empty file": ({"valid.en": ""}, "valid.en: no words in it"),
    "blank file": ({"test.de": " \n\n\t\n"}, "test.de: no words in it"),
    "bad utf-8": ({"train.de": "ja\nnün, ".encode() + b"\xe4h\nx\n"}, "train.de:2:6: not UTF-8: byte 0xe4"),
    "utf-16": ({"train.de": "der hund\n".encode("utf-16")}, "train.de:1:1: not UTF-8: byte 0xff"),
    "utf-16 without a mark": (
        {"train.de": "der hund\n".encode("utf-16-le")},
        "train.de:1:2: a NUL character, which no text has\n"
        "  hint: write it as UTF-8; of UTF-16: iconv -f UTF-16LE -t UTF-8",
    ),
}


@pytest.mark.parametrize(("changed", "message"), FAULTS.values(), ids=FAULTS)
def test_faulty_text_is_refused_at_its_place(pairs, write, home, changed, message):
    write(changed)
    assert refusal("pets", pairs) == f"{pairs}/{message}"
    assert not [name for name in entries(home) if name != "corpora"]


def test_names_that_are_no_names(pairs, home, figure):
    before = set(home.parent.rglob("*"))
    for name in ("", "..", "../x", "a/b", ".hidden", "-rf", "a b", "x" * 65, "é"):
        assert refusal(name, pairs).startswith(f"`{name}` cannot name a corpus\n  allowed: ")
    assert not home.exists()
    figure(f"refused, {len(set(home.parent.rglob('*')) - before)} files made")


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


def test_a_known_corpus_with_too_few_lines(known, pairs, write):
    write({"test.de": "der hund\n", "test.en": "the dog\n"})
    found = hashlib.sha256(b"der hund\n").hexdigest()
    assert refusal("pets", pairs) == (
        f"{pairs}/test.de: not the test.de of pets: 1 lines instead of 2,"
        f" sha256 {found[:12]}… instead of {known.files['test.de'].sha256[:12]}…\n"
        "  hint: to use it all the same, prepare it under another name"
    )
    assert prepare("my-pets", pairs).licence is None


def test_another_text_is_noted_where_tokenisers_differ(known, pairs, write, monkeypatch):
    files = dict(known.files)
    files["train.de"] = dataclasses.replace(files["train.de"], words=9)
    files["valid.en"] = KnownFile(1000, about=True)
    files["test.en"] = KnownFile(3)
    monkeypatch.setitem(BUILT_IN, "pets", dataclasses.replace(known, exact=False, files=files))
    write({"train.en": "the dog\nthe cat sleeps\nthe dog snores\n"})
    found = {name: hashlib.sha256((pairs / name).read_bytes()).hexdigest()[:12] for name in files}
    assert set(prepare("pets", pairs).notes) == {
        "train.de: 8 words instead of 9",
        f"train.en: other text, sha256 {found['train.en']}… instead of {known.files['train.en'].sha256[:12]}…",
        "test.en: 2 lines instead of 3",
    }


def test_a_text_in_no_place_kdx_knows(known):
    hint = "kdx data prepare mine --from PATH"
    with pytest.raises(KdxError) as caught:
        prepare("mine")
    assert str(caught.value) == f"kdx does not know a corpus `mine`\n  hint: of your own: {hint}"
    assert how_to_prepare("mine") == hint
    assert how_to_prepare("iwslt14") == "kdx data prepare iwslt14"


def packed(source, path):
    with zipfile.ZipFile(path, "w") as archive:
        for file in source.iterdir():
            archive.write(file, file.name)
    return path


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Serve one archive at every address, and record each download with its check."""
    archive = tmp_path / "fetched.zip"
    checks = []

    def download(address, folder, *, sha256, progress, otherwise):
        checks.append((address, sha256, otherwise))
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(archive, folder / "fetched.zip"))

    monkeypatch.setattr("kdx.data.prepare.download", download)
    return archive, checks


def test_a_known_corpus_is_fetched(known, pairs, fetched, monkeypatch, home):
    archive, checks = fetched
    packed(pairs, archive)
    address = "https://example.org/pets.zip"
    monkeypatch.setitem(BUILT_IN, "pets", dataclasses.replace(known, address=address, archive_sha256="abc"))
    about = prepare("pets")
    assert about.source == address
    assert checks == [
        (address, "abc", "fetch it by other means, then: kdx data prepare pets --from pets.zip"),
    ]
    assert entries(home)[-1] == "downloads/fetched.zip"


def test_a_mirror_or_any_address_may_be_said(known, pairs, fetched):
    archive, checks = fetched
    packed(pairs, archive)
    assert prepare("pets", "https://mirror.org/x.zip").source == "https://mirror.org/x.zip"
    assert prepare("mine", "https://mirror.org/x.zip").licence is None
    assert [sha256 for _, sha256, _ in checks] == [None, None]


@pytest.mark.parametrize("damage", [lambda whole: whole[:-30], lambda whole: b"<html>Please log in</html>"])
def test_a_fetched_archive_that_is_damaged_goes(known, pairs, fetched, home, damage):
    archive, _ = fetched
    archive.write_bytes(damage(packed(pairs, archive).read_bytes()))
    message = refusal("pets", "https://mirror.org/x.zip")
    assert message.endswith("  hint: what was fetched is damaged and was removed; the same command fetches it anew")
    assert not [name for name in entries(home) if "fetched" in name]


def test_full_disk_leaves_nothing(pairs, home, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        prepare("pets", pairs)
    assert caught.value.exit_code == 74
    assert entries(home) == ["corpora"]


def test_punctuation_that_stands_apart_has_to_be_said(pairs, home):
    assert prepare("pets", pairs, tokenised=True).tokenised
    assert refusal("pets", pairs) == (
        f"corpus `pets` is already there as text that is tokenised\n"
        f"  hint: take another name, or remove {home}/corpora/pets"
    )


def test_lines_without_a_word_are_counted_and_told_of_pairs(pairs, plain, write):
    write({"train.de": "der hund\n\n \t\n"})
    about = prepare("pets", pairs)
    assert about.files["train.de"].empty == 2
    assert about.notes == ("train.de: 2 lines without a word",)
    about = prepare("plain", plain)
    assert about.files["train.txt"].empty == 1
    assert not about.notes
