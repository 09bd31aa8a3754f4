"""Modules come from the texts that were read, each part's from its own."""

import pickle
import sys
import traceback

import pytest

from kdx.own_parts.importer import Importer


def importer(name: str, packages: tuple[str, ...] = (), **texts: str) -> Importer:
    return Importer(
        name, {module.replace("__", "."): (f"{module}.py", text) for module, text in texts.items()}, packages
    )


def test_modules_import_each_other_in_every_way():
    made = importer(
        "1" * 64,
        ("p",),
        a="import b\nfrom b import one\nimport p.c\nfrom p import c, d as other\nfrom p.c import three\n"
        "def late():\n    import e\n    return e.five\n",
        b="one = 1",
        p="from .c import three\nfrom . import d",
        p__c="three = 3",
        p__d="from .c import three\nfour = three + 1",
        e="five = 5",
    )
    a = made.module("a")
    assert (a.one, a.b.one, a.p.c.three, a.c.three, a.other.four, a.three, a.late()) == (1, 1, 3, 3, 4, 3, 5)
    assert made.module("a") is a


def test_a_folder_without_an_init_is_a_package_too():
    assert importer("2" * 64, a="import n.m\nfrom n import m\nseen = n.m.x + m.x", n__m="x = 2").module("a").seen == 4


def test_two_parts_have_helpers_of_the_same_name():
    one = importer("3" * 64, a="from helpers import x", helpers="x = 1")
    other = importer("4" * 64, a="from helpers import x", helpers="x = 2")
    assert (one.module("a").x, other.module("a").x) == (1, 2)
    assert "helpers" not in sys.modules


def test_what_is_not_among_them_comes_from_the_interpreter():
    assert importer("5" * 64, a="import math, os.path\nseen = math.pi, os.path.sep").module("a").seen[0] > 3
    with pytest.raises(ModuleNotFoundError, match="nothing_of_the_kind"):
        importer("6" * 64, a="import nothing_of_the_kind").module("a")


def test_a_module_that_raises_is_not_kept_and_its_lines_are_shown():
    made = importer("7" * 64, a="import b", b="x = 1\nraise KeyError(x)  # here")
    with pytest.raises(KeyError) as caught:
        made.module("a")
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == ("b.py", 2, "raise KeyError(x)  # here")
    assert not [name for name in sys.modules if name.startswith(f"kdx_part_{'7' * 16}.")]


def test_dataclasses_and_pickled_names_find_their_module():
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n"
    )
    found = importer("8" * 64, a=text).module("a").A
    assert found().x == 1 and sys.modules[found.__module__].A is found
    assert pickle.loads(pickle.dumps(found(2))) == found(2)
