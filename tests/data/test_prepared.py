"""What is told of a prepared corpus is checked before anything is read."""

import dataclasses
import json
import os

import pytest

from kdx.data.find_text import find_text
from kdx.data.prepare import prepare
from kdx.data.prepared import corpus_folder, prepared_corpora, read_about
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Split


def test_two_corpora_are_listed_by_name(pairs, plain):
    prepare("b", plain)
    prepare("a", pairs)
    assert [about.name for about in prepared_corpora()] == ["a", "b"]


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
    about_json = json.loads((corpus_folder("pets") / "about.json").read_text())
    assert about_json == {**dataclasses.asdict(about), "suffixes": ["de", "en"], "notes": []}


def test_nothing_prepared_in_a_home_that_is_not_there(home):
    assert prepared_corpora() == []
    assert read_about(home / "corpora" / "x") is None


HOSTILE = {
    "another name": lambda about: about.update(name="../elsewhere"),
    "a suffix that leads out": lambda about: about.update(suffixes=["de", "../../secret"]),
    "one language twice": lambda about: about.update(suffixes=["de", "de"]),
    "three languages": lambda about: about.update(suffixes=["de", "en", "fr"]),
    "no language": lambda about: about.update(suffixes=[]),
    "a file elsewhere": lambda about: about["files"].update({"../../secret": about["files"].pop("test.de")}),
    "an absolute file": lambda about: about["files"].update({"/etc/passwd": about["files"].pop("test.de")}),
    "a file too many": lambda about: about["files"].update({"more": about["files"]["test.de"]}),
    "a file too few": lambda about: about["files"].pop("test.de"),
    "no digest": lambda about: about["files"]["test.de"].update(sha256="0"),
    "fewer than no lines": lambda about: about["files"]["test.de"].update(lines=-1),
    "lines in words": lambda about: about["files"]["test.de"].update(lines="3"),
    "lines beyond measure": lambda about: about["files"]["test.de"].update(lines=1e300),
    "notes that are none": lambda about: about.update(notes=[{"a": 1}]),
    "a field of its own": lambda about: about.update(command="rm -rf /"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_a_corpus_tells_of_itself_is_checked_field_by_field(pairs, home, change, figure):
    prepare("pets", pairs)
    path = corpus_folder("pets") / "about.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))
    with pytest.raises(KdxError, match="this does not tell what corpus it is") as caught:
        find_text(Data(corpus="pets"), home)
    assert len(str(caught.value)) < 1000
    figure(f"refused: {caught.value.problem.partition(': ')[2][:60]}")


@pytest.mark.parametrize("kind", ["pipe", "link", "device", "too large", "too deep"])
def test_what_tells_of_a_corpus_is_a_short_file(pairs, kind):
    prepare("pets", pairs)
    path = corpus_folder("pets") / "about.json"
    kept = path.rename(path.with_name("kept.json"))
    {
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(kept),
        "device": lambda: path.symlink_to("/dev/zero"),
        "too large": lambda: path.write_text(kept.read_text() + " " * 2_000_000),
        "too deep": lambda: path.write_text("[" * 500_000),
    }[kind]()
    with pytest.raises(KdxError):
        read_about(path.parent)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_prepared_text_is_a_file_of_its_folder(pairs, home, kind, tmp_path):
    prepare("pets", pairs)
    path = corpus_folder("pets") / "train.de"
    path.rename(tmp_path / "train.de")
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(tmp_path / "train.de")
    with pytest.raises(KdxError, match=f"{path}: cannot be read: this is a .*, not a file"):
        list(find_text(Data(corpus="pets"), home).lines(Split.TRAIN, "de"))
