"""A message has the place, the problem, what is allowed and what to do, in that order."""

import errno
import os

import pytest

from kdx.errors import (
    Faults,
    KdxError,
    Place,
    by_place,
    did_you_mean,
    of_a_package,
    of_the_machine,
    shortened,
)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (KdxError("it is wrong"), "it is wrong"),
        (KdxError("it is wrong", place=Place("g.yaml", 3, 7)), "g.yaml:3:7: it is wrong"),
        (KdxError("it is wrong", place="runs.db", hint="mend it"), "runs.db: it is wrong\n  hint: mend it"),
        (KdxError("wrong", allowed=["a", "b"], hint="take a"), "wrong\n  allowed: a, b\n  hint: take a"),
        (KdxError("wrong", allowed="a" * 81, hint="take a"), f"wrong\n  hint: take a\n  allowed: {'a' * 81}"),
        (KdxError("wrong", allowed="at most 3"), "wrong\n  allowed: at most 3"),
        (Faults([KdxError("one", hint="h"), KdxError("two")]), "one\n  hint: h\ntwo"),
    ],
)
def test_a_message_reads_in_one_order(fault, text):
    assert str(fault) == text


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (errno.ENOSPC, 74, "f: the disk is full: No space left on device\n  hint: free some space"),
        (errno.EDQUOT, 74, "f: the disk is full: Disk quota exceeded\n"),
        (errno.EFBIG, 74, "f: the disk is full: File too large\n"),
        (errno.EIO, 74, "f: the disk failed: Input/output error\n  hint: check the disk"),
        (errno.EROFS, 3, "f: no permission: Read-only file system\n  hint: name a folder on another disk"),
        (errno.EACCES, 3, "f: no permission: Permission denied\n  hint: look at its owner and mode"),
        (errno.EPERM, 3, "f: no permission: Operation not permitted\n"),
    ],
)
def test_what_the_machine_refuses_is_shown_with_the_file_and_the_remedy(number, code, text):
    for named in (OSError(number, os.strerror(number), "f"), OSError(number, os.strerror(number))):
        fault = of_the_machine(named, "f")
        assert fault.exit_code == code and str(fault).startswith(text)
    assert of_the_machine(OSError(errno.ENOENT, "No such file or directory", "f")) is None


@pytest.mark.parametrize(
    ("word", "hint"),
    [("rfb", "did you mean `rbf`?"), ("RBF", "did you mean `rbf`?"), ("sausage", None), ("", None)],
)
def test_the_nearest_word_is_offered_only_when_it_is_near(word, hint):
    assert did_you_mean(word, ["exponential", "rbf"]) == hint


def test_of_many_faults_the_first_are_shown():
    faults = [KdxError("wrong", place=Place("g.yaml", line, 1)) for line in range(1, 61)]
    shown = str(by_place(reversed(faults))).splitlines()
    assert shown[:20] == [str(fault) for fault in faults[:20]] and shown[20:] == ["… and 40 more"]


def test_every_part_of_a_message_has_an_end(figure):
    long = "x" * 1_000_000
    message = str(KdxError(long, place=long, allowed=[f"word{number}" for number in range(100_000)], hint=long))
    assert len(message) < 4 * 2100
    assert "word0, word1, " in message
    figure(f"a message of 4 parts of 1,000,000 characters: {len(message):,}")


def test_a_file_name_makes_no_line_of_its_own():
    assert str(KdxError("wrong", place=Place("a\nerror: all is well", 1, 2))) == "a\\nerror: all is well:1:2: wrong"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        ("a\n b", "a b"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 80 + "…"),
    ],
)
def test_a_value_is_shown_as_yaml_spells_it_on_one_line_and_in_part(value, shown):
    assert shortened(value) == shown


def test_a_package_that_is_there_and_broken_is_not_said_to_be_missing():
    missing = of_a_package(ModuleNotFoundError("No module named 'torch'", name="torch"))
    assert missing and str(missing).endswith("in a clone of kdx: pip install -c constraints.txt .")
    assert of_a_package(ImportError("libcudnn.so.9: cannot open shared object file", name="torch._C")) is None
    assert of_a_package(ImportError("cannot import name 'x' from 'torch'", name="torch")) is None
    assert of_a_package(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
