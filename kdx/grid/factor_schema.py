"""JSON Schema of the value of each factor, a key of a cell with its section before it: `kernel`, `training.steps`."""

from pydantic import BaseModel

from kdx.grid.cell_selector import factors
from kdx.grid.field_schema import IN_A_FILE, Schema, field_schema, option_schema, word_schema
from kdx.grid.fields import CellFields
from kdx.grid.sections import Data, Evaluation, Filters, Model, Select, Training
from kdx.grid.word_facts import facts_of_corpus
from kdx.grid.words import known_options
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES, options_of_corpora
from kdx.words.family import cached_over_words

SECTIONS: dict[str, type[BaseModel]] = {
    "data": Data,
    "model": Model,
    "training": Training,
    "filter": Filters,
    "evaluation": Evaluation,
    "select": Select,
}
"""The keys of a cell that hold further keys."""


@cached_over_words
def keys() -> tuple[str, ...]:
    """The factors, and the keys of `select`, which no axis varies."""
    return (*factors(), *(f"select.{name}" for name in Select.model_fields))


@cached_over_words
def factor_schema(factor: str) -> Schema:
    """The schema of one of `keys`, with its description and its default.

    Raises:
        KeyError: there is no such key.
    """
    section, _, name = factor.rpartition(".")
    model = SECTIONS[section] if section else CellFields
    fields = {info.alias or field: field for field, info in model.model_fields.items()}
    if factor == "data.corpus":
        return _corpus()
    if name in fields:
        return field_schema(model, fields[name])
    return option_schema(name, options_of_corpora()[name] if section else [known_options()[name]])


def _corpus() -> Schema:
    schema = field_schema(Data, "corpus")
    stored = {"title": "the name of a stored text"} | {
        key: schema.pop(key) for key in ("type", "minLength", "maxLength", "pattern")
    }
    return schema | {
        "anyOf": [
            *(word_schema(facts_of_corpus(word)) for word in {**BUILT_IN.addresses, **DIFFICULTIES.outside}),
            stored,
            IN_A_FILE,
        ]
    }
