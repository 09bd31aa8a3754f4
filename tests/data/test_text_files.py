import io
import os
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdx.data import text_files
from kdx.data.corpora import multi30k, wikitext2
from kdx.data.text import PLAIN, TextFile, file_names
from kdx.data.text_files import UnreadableError, corpus_files, joined, open_source, segments, text_of_lines
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


def found(source, known=None):
    with open_source(source) as files:
        suffixes, texts = corpus_files(source, files, known)
        return suffixes, {name: b"".join(text.lines()) for name, text in texts.items()}


def refusal(source, known=None):
    with pytest.raises(KdxError) as caught:
        found(source, known)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
@pytest.mark.parametrize("folder", ["", "./", "corpus/", "very/deep/corpus/"])
def test_archives_of_every_kind(tmp_path, kind, folder):
    source = archive(tmp_path, {f"{folder}{name}": text for name, text in PAIRS.items()} | {"README.md": b"hi"}, kind)
    assert found(source) == (("de", "en"), PAIRS)


def test_folder(write):
    assert found(write(PAIRS)) == (("de", "en"), PAIRS)
    assert found(write({f"corpus/{name}": text for name, text in PAIRS.items()}, "above")) == (("de", "en"), PAIRS)


def test_plain_text(write):
    plain = dict.fromkeys(file_names(PLAIN), b"x\n")
    assert found(write(plain)) == (PLAIN, plain)


def test_uppermost_folder_wins(write):
    deeper = {f"bpe/{name}": b"x\n" for name in PAIRS}
    assert found(write({**PAIRS, **deeper}))[1] == PAIRS


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


def test_three_languages_are_too_many(write):
    source = write({"train.de": "x", "train.en": "x", "train.fr": "x"})
    assert "training text with 3 suffixes: de, en, fr" in refusal(source)


def test_no_training_text(write):
    source = write({"README.md": "x", "train": "x", "train.de.gz": "x"})
    assert refusal(source) == (
        f"{source}: no training text in it, but README.md, train.de.gz\n"
        "  allowed: train.txt, or one file such as ptb.train.txt, or train.X and train.Y"
    )
    with pytest.raises(KdxError, match=r"allowed: train\.de, train\.en"):
        found(source, multi30k.TEXT)


def test_nothing_there(tmp_path):
    assert refusal(tmp_path / "absent.tar") == f"{tmp_path}/absent.tar: no such folder or archive"


@pytest.mark.parametrize("contents", [b"", b"no archive at all\n" * 100])
def test_no_archive(write, contents):
    source = write({"a.tar.xz": contents}) / "a.tar.xz"
    assert refusal(source).startswith(f"{source}: this is no archive, or a damaged one\n  allowed: a folder, .tar,")


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
@pytest.mark.parametrize("left", [0.2, 0.5, 0.9])
def test_truncated_archive(tmp_path, kind, left):
    # Not compressible, so that a cut falls into the text.
    source = archive(tmp_path, {name: os.urandom(20_000).hex().encode() for name in PAIRS}, kind)
    source.write_bytes(source.read_bytes()[: int(source.stat().st_size * left)])
    assert str(source) in refusal(source)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_damage_inside_an_archive(tmp_path, kind):
    source = archive(tmp_path, dict.fromkeys(PAIRS, b"word " * 1000), f"{kind}.gz" if kind == "tar" else kind)
    contents = bytearray(source.read_bytes())
    middle = len(contents) // 3
    contents[middle : middle + 20] = b"x" * 20
    source.write_bytes(contents)
    assert str(source) in refusal(source)


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("name", ["../train.de", "corpus/../../train.de", "/etc/train.de"])
def test_a_path_that_leads_out_is_refused(tmp_path, kind, name):
    source = archive(tmp_path, {**PAIRS, name: b"x"}, kind)
    assert refusal(source) == f"{source}: an archive with a path that leads out of it: {name!r}"


def linked(path, name, target, kind):
    source = archive(path, {n: t for n, t in PAIRS.items() if n != name}, "tar")
    with tarfile.open(source, "a") as opened:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        opened.addfile(member)
    return source


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "train.en"])
def test_links_and_devices_in_a_tar_are_no_text(tmp_path, kind, target):
    assert "missing: test.de" in refusal(linked(tmp_path, "test.de", target, kind))


def test_links_in_a_zip_are_no_text(tmp_path):
    source = archive(tmp_path, {name: text for name, text in PAIRS.items() if name != "test.de"}, "zip")
    with zipfile.ZipFile(source, "a") as opened:
        link = zipfile.ZipInfo("test.de")
        link.external_attr = 0o120777 << 16
        opened.writestr(link, "/etc/passwd")
    assert "missing: test.de" in refusal(source)


def test_sparse_files_are_no_text(tmp_path):
    source = archive(tmp_path, {name: text for name, text in PAIRS.items() if name != "test.de"}, "tar")
    with tarfile.open(source, "a") as opened:
        member = tarfile.TarInfo("test.de")
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(10**15)}
        member.size = 512
        opened.addfile(member, io.BytesIO(b"0\n".ljust(512, b"\0")))
    assert "missing: test.de" in refusal(source)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_of_too_many_files(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(text_files, "MOST_FILES", 5)
    source = archive(tmp_path, PAIRS, kind)
    assert refusal(source) == f"{source}: an archive of more than 5 files is no corpus"


NAMES = st.one_of(
    st.sampled_from([*PAIRS, "../train.de", "/train.de", "a/../../x", "", ".", "..", "./", "a/", "/", "C:\\x", "\0"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
KINDS = st.sampled_from(
    [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, b"S", b"g"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    members=st.lists(
        st.tuples(NAMES, KINDS, NAMES, st.binary(max_size=20)), max_size=8, unique_by=lambda member: member[0]
    ),
    zipped=st.booleans(),
    cut=st.integers(0, 200),
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
)
def test_hostile_archives_are_refused_or_read_and_never_written(tmp_path, members, zipped, cut, damage):
    contents = io.BytesIO()
    if zipped:
        with zipfile.ZipFile(contents, "w") as opened:
            for name, kind, _, text in members:
                entry = zipfile.ZipInfo(name or "x")
                entry.external_attr = (0o120777 if kind == tarfile.SYMTYPE else 0o100644) << 16
                opened.writestr(entry, text)
    else:
        with tarfile.open(fileobj=contents, mode="w") as opened:
            for name, kind, target, text in members:
                member = tarfile.TarInfo(name.replace("\0", "0"))
                member.type, member.linkname, member.size = kind, target.replace("\0", "0"), len(text)
                opened.addfile(member, io.BytesIO(text))
    changed = bytearray(contents.getvalue())
    for place, byte in damage:
        changed[place % len(changed)] = byte
    folder = tmp_path / "hostile"
    folder.mkdir(exist_ok=True)
    source = folder / "archive"
    source.write_bytes(changed[: len(changed) - cut])
    try:
        with open_source(source) as files:
            for path, text in files.items():
                assert not path.is_absolute() and ".." not in path.parts
                assert sum(len(line) for line in text.lines()) < 10_000
            corpus_files(source, files)
    except KdxError:
        pass
    assert list(folder.iterdir()) == [source]


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


def test_the_name_itself_comes_before_a_published_one(write):
    plain = dict.fromkeys(file_names(PLAIN), b"x\n")
    assert found(write({**plain, "wiki.train.tokens": "y"}), wikitext2.TEXT)[1] == plain


def test_a_line_too_long_is_refused_at_its_place(write):
    source = write({**PAIRS, "valid.en": b"x\n" + b"y" * 1_000_001})
    assert refusal(source) == (
        f"{source}/valid.en:2:1: a line of more than 1,000,000 bytes\n  hint: text has a sentence or a paragraph a line"
    )
    assert found(write({**PAIRS, "valid.en": b"y" * 1_000_000}))


def test_damage_is_told_apart_from_what_is_missing(write):
    with pytest.raises(UnreadableError), open_source(write({"a.zip": b"PK"}) / "a.zip"):
        pass


def text_of(contents: bytes) -> TextFile:
    return TextFile("a.txt", lambda: iter(contents.splitlines(keepends=True)), len(contents))


def test_texts_are_joined_line_by_line():
    both = joined([text_of(b"a\nb"), text_of(b"c\n")])
    assert (both.place, both.size, list(both.lines())) == ("a.txt + a.txt", 5, [b"a\n", b"b\n", b"c\n"])
    assert list(both.lines()) == list(both.lines())


def test_made_text_is_read_as_any_other():
    assert list(text_of_lines("x", ["a", "ü"]).lines()) == [b"a\n", "ü\n".encode()]
    assert list(text_of_lines("x", ["a", "ü"]).decoded()) == ["a", "ü"]


def test_segments_of_a_marked_test_set():
    marked = b'<?xml version="1.0"?>\n<title>x</title>\n<seg id="1"> A b. </seg>\n<hl>\n<seg id="12">C &amp; d</seg>\n'
    assert list(segments(text_of(marked))) == ["A b.", "C &amp; d"]


def test_links_to_files_are_followed_and_links_to_folders_are_not(write, tmp_path):
    source = write(PAIRS)
    (source / "test.de").rename(tmp_path / "elsewhere")
    (source / "test.de").symlink_to(tmp_path / "elsewhere")
    (source / "deeper").symlink_to(tmp_path)
    assert found(source)[1] == PAIRS
    with open_source(source) as files:
        assert not any(path.parts[0] == "deeper" for path in files)


def test_encrypted_zip(tmp_path):
    source = archive(tmp_path, PAIRS, "zip")
    contents = bytearray(source.read_bytes())
    for sign in (b"PK\x03\x04", b"PK\x01\x02"):
        place = -1
        while (place := contents.find(sign, place + 1)) >= 0:
            contents[place + (6 if sign == b"PK\x03\x04" else 8)] |= 1
    source.write_bytes(contents)
    assert "cannot be read" in refusal(source)


def test_paths_are_those_inside(write):
    with open_source(write(PAIRS)) as files:
        assert set(files) == {PurePosixPath(name) for name in PAIRS}


def test_what_is_no_file_is_no_text_and_no_archive(write, tmp_path):
    source = write(PAIRS)
    (source / "test.de").unlink()
    os.mkfifo(source / "test.de")
    assert "missing: test.de" in refusal(source)
    assert "this is a named pipe, not a file\n  allowed: a folder, .tar" in refusal(source / "test.de")
    assert "/dev/zero: this is a device, not a file" in refusal(Path("/dev/zero"))


def test_a_folder_of_too_many_files(write, monkeypatch):
    monkeypatch.setattr(text_files, "MOST_FILES", 5)
    source = write(PAIRS)
    assert refusal(source) == f"{source}: a folder of more than 5 files is no corpus"
