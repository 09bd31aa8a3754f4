"""`kdx note` writes remarks, which `kdx status` shows and finds."""

import json

import pytest
from looked_after import planned, refused, typed


def test_a_note_on_a_sweep_is_shown_with_its_tags():
    planned(2)
    said = typed("note", "tiny", "before the cut", "--tag", "baseline")
    assert said.stderr == "tiny has a note and tag baseline now\n"
    whole = typed("status").stdout
    assert "baseline" in whole and whole.endswith("before the cut\n")
    (found,) = json.loads(typed("status", "--json").stdout)
    assert (found["tags"], [note["text"] for note in found["notes"]]) == (["baseline"], ["before the cut"])
    assert typed("status", "tiny").stdout.endswith("tags: baseline\n")


def test_a_run_is_found_by_its_tag():
    planned(3)
    typed("note", "2", "looks odd", "--tag", "odd")
    typed("note", "3", "--tag", "odd", "--tag", "late")
    chosen = json.loads(typed("status", "tiny", "tag=odd", "--json").stdout)["runs"]
    assert [(run["run"], run["tags"]) for run in chosen] == [(2, ["odd"]), (3, ["odd", "late"])]
    assert [note["text"] for note in chosen[0]["notes"]] == ["looks odd"]
    shown = typed("status", "tiny").stdout
    assert "run 2" in shown and "looks odd" in shown


def test_a_tag_is_given_once_and_taken_back():
    planned(1)
    typed("note", "1", "--tag", "odd", "--tag", "late")
    assert typed("note", "1", "--tag", "odd").stderr == "run 1 stays as it is\n"
    assert typed("note", "1", "--untag", "odd", "--untag", "base").stderr == "run 1 has no tag odd now\n"
    assert json.loads(typed("status", "tiny", "--json").stdout)["runs"][0]["tags"] == ["late"]
    said = typed("note", "1", "more", "--tag", "odd", "--untag", "late").stderr
    assert said == "run 1 has a note and tag odd and no tag late now\n"


@pytest.mark.parametrize("tag", ["", "two words", "a=b", "x" * 101, "a\x1b[31m"])
def test_a_tag_that_is_no_word_is_refused(tag):
    planned(1)
    assert refused("note", "1", "--tag", tag).problem == f"`{tag}` as a tag"


def test_nothing_and_nowhere_are_refused():
    planned(1)
    assert refused("note", "1").problem == "there is nothing to write"
    assert refused("note", "1", "  ").problem == "there is nothing to write"
    assert refused("note", "77", "x").problem == "there is no run 77"
    assert refused("note", "tinny", "x").hint == "did you mean `tiny`?"


def test_what_drives_a_terminal_is_kept_and_shown_inert():
    planned(1)
    typed("note", "tiny", "\x1b[31mred\x1b]0;title\x07")
    assert "\x1b" not in typed("status").stdout + typed("status", "tiny").stdout
