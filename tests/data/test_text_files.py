import contextlib
import io
import os
import tarfile
import zipfile

import pytest

from kdx.data.corpora import multi30k, wikitext2
from kdx.data.storage import data_home
from kdx.data.text import PLAIN, TextFile, file_names
from kdx.data.text_files import UnreadableError, corpus_files, joined, open_source, segments
from kdx.errors import KdxError

PAIRS = {name: f"{name}\n".encode() for name in file_names(("de", "en"))}


def archive(path, files, kind="tar.gz"):
    """An archive of these files, as a path."""
    if kind == "zip":
        with zipfile.ZipFile(path / "a.zip", "w") as opened:
            for name, contents in files.items():
                opened.writestr(name, contents)
        return path / "a.zip"
    mode = "w" if kind == "tar" else f"w:{kind.removeprefix('tar.')}"
    with tarfile.open(path / f"a.{kind}", mode) as opened:
        for name, contents in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            opened.addfile(member, io.BytesIO(contents))
    return path / f"a.{kind}"


@pytest.fixture(autouse=True)
def nothing_is_left_unpacked(home):
    """Whatever was in an archive."""
    yield
    assert not home.exists() or not list(home.iterdir())


def found(source, known=None):
    with open_source(source, data_home()) as files:
        suffixes, texts = corpus_files(source, files, known)
        return suffixes, {name: b"".join(text.lines()) for name, text in texts.items()}


def refusal(source, known=None):
    with pytest.raises(KdxError) as caught:
        found(source, known)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_archives_of_every_kind(tmp_path, kind):
    for folder in ("", "./", "very/deep/corpus/"):
        files = {f"{folder}{name}": text for name, text in PAIRS.items()} | {"README.md": b"hi"}
        assert found(archive(tmp_path, files, kind)) == (("de", "en"), PAIRS)


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_a_truncated_archive_is_refused(tmp_path, kind):
    # Not compressible, so that a cut falls into the text.
    source = archive(tmp_path, {name: os.urandom(20_000).hex().encode() for name in PAIRS}, kind)
    whole = source.read_bytes()
    for left in (0.2, 0.9):
        source.write_bytes(whole[: int(len(whole) * left)])
        with pytest.raises(UnreadableError, match=str(source)):
            found(source)


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("name", ["../../train.de", "/train.de"])
def test_no_archive_writes_outside_its_folder(tmp_path, home, kind, name):
    source = archive(tmp_path, {**PAIRS, name: b"x"}, kind)
    with contextlib.suppress(UnreadableError):
        found(source)
    assert set(tmp_path.iterdir()) == {source, home}


def test_folder(write):
    assert found(write(PAIRS)) == (("de", "en"), PAIRS)
    assert found(write({f"corpus/{name}": text for name, text in PAIRS.items()}, "above")) == (("de", "en"), PAIRS)


def test_a_known_corpus_has_its_folder(write):
    both = {f"{folder}/{name}": folder.encode() for folder in ("raw", "tok") for name in PAIRS}
    source = write(both)
    assert set(found(source, multi30k.TEXT)[1].values()) == {b"tok"}
    assert refusal(source) == f"{source}: training text in 2 folders: raw, tok\n  hint: unpack it and give one of them"


def test_missing_files_are_named(write):
    source = write({name: PAIRS[name] for name in ("train.de", "train.en", "valid.en")})
    assert refusal(source) == (
        f"{source}: missing: valid.de, test.de, test.en\n"
        "  allowed: train.de, train.en, valid.de, valid.en, test.de, test.en"
    )


def test_one_language_misses_its_other(write):
    source = write({"train.de": "x"})
    assert refusal(source).startswith(f"{source}: training text with 1 suffixes: de\n  allowed: two of them")


def test_no_training_text(write):
    source = write({"README.md": "x", "train": "x", "train.de.gz": "x"})
    assert refusal(source) == (
        f"{source}: no training text in it, but README.md, train.de.gz\n"
        "  allowed: train.txt, or one file such as ptb.train.txt, or train.X and train.Y"
    )
    with pytest.raises(KdxError, match=r"allowed: train\.de, train\.en"):
        found(source, multi30k.TEXT)


def test_nothing_there(tmp_path):
    assert refusal(tmp_path / "absent.tar").startswith(f"{tmp_path}/absent.tar: no such folder or archive\n  allowed: ")


@pytest.mark.parametrize("contents", [b"", b"no archive at all\n" * 100])
def test_no_archive(write, contents):
    source = write({"a.tar.xz": contents}) / "a.tar.xz"
    assert refusal(source).startswith(f"{source}: this is no archive, or a damaged one\n  allowed: a folder, .tar,")


def test_published_names_are_translated(write):
    source = write({f"wikitext-2/wiki.{split}.tokens": split for split in ("train", "valid", "test")})
    assert found(source, wikitext2.TEXT)[1] == {f"{split}.txt": split.encode() for split in ("train", "valid", "test")}


@pytest.mark.parametrize("name", ["ptb.train.txt", "wiki.train.tokens", "enwik8_train.raw"])
def test_plain_text_may_have_the_splits_as_parts_of_its_names(write, name):
    names = {name.replace("train", split): split for split in ("train", "valid", "test")}
    source = write({f"data/{each}": text for each, text in names.items()} | {"README.md": "x"})
    assert found(source) == (PLAIN, {f"{split}.txt": split.encode() for split in ("train", "valid", "test")})


def test_of_two_files_with_a_split_in_their_names_neither_is_taken(write):
    names = [f"ptb.{kind}{split}.txt" for kind in ("", "char.") for split in ("train", "valid", "test")]
    assert "no training text in it, but ptb.char.test.txt, ptb.char.train.txt," in refusal(
        write(dict.fromkeys(names, "x"))
    )


def text_of(contents: bytes) -> TextFile:
    return TextFile("a.txt", lambda: iter(contents.splitlines(keepends=True)), len(contents))


def test_texts_are_joined_line_by_line():
    both = joined([text_of(b"a\nb"), text_of(b"c\n")])
    assert (both.place, both.size, list(both.lines())) == ("a.txt + a.txt", 5, [b"a\n", b"b\n", b"c\n"])
    assert list(both.lines()) == list(both.lines())


def test_segments_of_a_marked_test_set():
    marked = b'<?xml version="1.0"?>\n<title>x</title>\n<seg id="1"> A b. </seg>\n<hl>\n<seg id="12">C &amp; d</seg>\n'
    assert list(segments(text_of(marked))) == ["A b.", "C &amp; d"]


def test_links_to_files_are_followed_and_what_is_no_file_is_passed_over(write, tmp_path):
    source = write(PAIRS)
    (source / "test.de").rename(tmp_path / "elsewhere")
    (source / "test.de").symlink_to(tmp_path / "elsewhere")
    (source / "deeper").symlink_to(tmp_path)
    os.mkfifo(source / "train.pipe")
    assert found(source)[1] == PAIRS
