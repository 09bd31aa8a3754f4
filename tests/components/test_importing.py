"""Modules come from the texts that were read, each component's from its own."""

import pickle
import sys
import traceback
from types import ModuleType

import pytest

from kdx.components.importing import import_module
from kdx.components.source import module_of


def imported(digit: str, **texts: str) -> ModuleType:
    """The module `a` among these, whose names have `__` for `/`; `p__init` is the package `p`."""
    paths = {name.replace("__", "/").replace("/init", "/__init__") + ".py": text for name, text in texts.items()}
    return import_module(digit * 64, "a", paths, {module_of(path): path for path in paths})


def test_modules_import_each_other_in_every_way():
    a = imported(
        "1",
        a="import b\nfrom b import one\nimport p.c\nimport p.d as d2\nfrom p import c, d as other\n"
        "from p.c import three\ndef late():\n    import e\n    return e.five\n",
        b="one = 1",
        p__init="from .c import three\nfrom . import d",
        p__c="three = 3",
        p__d="from .c import three\nfour = three + 1",
        e="five = 5",
    )
    assert (a.one, a.b.one, a.p.c.three, a.c.three, a.other.four, a.three, a.late()) == (1, 1, 3, 3, 4, 3, 5)
    assert a.d2 is a.other and imported("1", a="") is a


def test_a_folder_without_an_init_is_a_package_too():
    assert imported("2", a="import n.m\nfrom n import m\nseen = n.m.x + m.x", n__m="x = 2").seen == 4


def test_two_components_have_helpers_of_the_same_name():
    texts = ("x = 1", "x = 2")
    assert [imported(d, a="from helpers import x", helpers=t).x for d, t in zip("34", texts, strict=True)] == [1, 2]
    assert "helpers" not in sys.modules


def test_a_file_where_the_user_stands_is_not_taken_for_a_text(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert imported("9", a="import b", b="x = 1").b.x == 1


def test_what_is_not_among_them_comes_from_the_interpreter():
    assert imported("5", a="import math, os.path\nseen = math.pi, os.path.sep").seen[0] > 3
    with pytest.raises(ModuleNotFoundError, match="No module named 'nothing_of_the_kind'"):
        imported("6", a="import nothing_of_the_kind")


def test_a_module_that_raises_is_not_kept_and_its_lines_are_shown():
    with pytest.raises(KeyError) as caught:
        imported("7", a="import b", b="x = 1\nraise KeyError(x)  # here")
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == ("b.py", 2, "raise KeyError(x)  # here")
    assert not [name for name in sys.modules if name.startswith(f"kdx_component_{'7' * 16}_a.")]


def test_dataclasses_and_pickled_names_find_their_module():
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n"
    )
    found = imported("8", a=text).A
    assert found().x == 1 and sys.modules[found.__module__].A is found
    assert pickle.loads(pickle.dumps(found(2))) == found(2)
