"""Every task says all that the rest of kdx asks of it, and what it names is there."""

import pytest

from kdx.data.text import file_names
from kdx.grid.fields import CellFields
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.tasks.data_kinds import text_kind
from kdx.training.module import TaskModule

EVERY = pytest.mark.parametrize("task", list(TASKS.definitions()), ids=list(TASKS))


@EVERY
def test_what_a_task_names_is_there(task):
    assert issubclass(TASKS[task.word], TaskModule)
    assert callable(task.data.read())
    assert task.metrics and task.attentions and task.embeddings and task.title
    assert not set(task.metrics) & set(task.only_test)


@EVERY
def test_settings_of_a_task_are_keys_of_a_cell(task):
    for key in task.settings:
        section, _, field = key.rpartition(".")
        fields = CellFields.model_fields[section].annotation.model_fields if section else CellFields.model_fields
        assert field in fields, key


@EVERY
def test_a_cell_of_the_task_needs_nothing_but_its_corpus(task):
    cell = CellSpec.model_validate({"task": task.word, "data": {"corpus": "any"}, "model": {"width": 96}})
    assert cell.selection == (f"valid/{next(iter(task.metrics))}", next(iter(task.metrics.values())).direction)
    assert [cell.option(option.name) for option in task.options] == [option.words[0] for option in task.options]


def test_the_kind_of_a_text_is_told_by_its_suffixes():
    told = {suffixes: text_kind(suffixes).word for suffixes in (("txt",), ("de", "en"), ("txt", "labels"))}
    assert list(told.values()) == ["plain text", "parallel text", "labelled text"]
    assert text_kind(("labels", "txt")) == text_kind(("txt", "labels"))
    assert file_names(text_kind(("txt", "labels")).suffixes)[:2] == ["train.txt", "train.labels"]
