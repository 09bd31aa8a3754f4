"""Writes docs/reference/words.md, the values of a grid, and kdx/words/factors.json: `python -m tests.words`."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kdx.attention.families import FAMILIES
from kdx.grid.explain import explain
from kdx.grid.field_types import NO_COST, Follows, OneOf
from kdx.grid.fields import CellFields
from kdx.grid.words import known_options
from kdx.metrics import METRICS
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES, options_of_corpora
from kdx.words.family import Definition
from kdx.words.option import Option
from kdx.words.table import FACTORS, Factor
from tests.words_table import in_lines

FILE = Path(__file__).parents[1] / "docs" / "reference" / "words.md"
PROPERTIES = {
    "positive_semi_definite": "positive semi-definite if symmetric",
    "blind_to_query_norm": "does not see the query's norm",
    "sees_positions": "sees positions",
    "absolute": "changes when all positions move",
    "past_only": "self-attention to the past only",
    "sees_later": "sees later keys",
}
"""Facts that a name may have, as the page words them."""


def text() -> str:
    """The page."""
    lines = [
        "# Kernels, positions, tasks and other values",
        "",
        "The values that the keys of a [grid](grid-keys.md) take, with their formulas and options. `make words`",
        "generates this page from the classes in `kdx/`; `kdx explain VALUE` prints one entry.",
        "",
    ]
    for family in FAMILIES:
        holds = {known.word: properties(known) for known in family.definitions()}
        more = ["properties"] if any(holds.values()) else []
        titles = ["value", "what it is", "formula", "source", *more, "options"]
        lines += [f"## {family.axis}", "", f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
        for known in family.definitions():
            own = ", ".join(f"`{key}`" for key in (*known.takes, *known.option_names))
            row = [f"`{known.word}`", known.title.replace("|", "\\|"), known.formula.replace("|", "\\|"), known.source]
            row += [*([holds[known.word]] if more else []), own]
            lines.append(f"| {' | '.join(row)} |")
        lines.append("")
    lines += [
        "## task",
        "",
        "Some metrics are also measured by slice of the test, such as `perplexity/context=5-8`; a table can name such",
        "a slice as its `metric`.",
        "",
        "| task | what is learned | data | metrics (the first selects) | slices | options |",
        "|---|---|---|---|---|---|",
    ]
    for task in TASKS.definitions():
        own = [f"`{key}`" for key in task.settings]
        own += [f"`{option.name}`" for option in task.options]
        metrics = ", ".join(task.metrics)
        sliced = "; ".join(
            f"{' and '.join(slicing.metrics)} by `{slicing.respect}`, {slicing.title}" for slicing in task.slicings
        )
        lines.append(f"| `{task.word}` | {task.title} | {task.data.word} | {metrics} | {sliced} | {', '.join(own)} |")
    lines += [
        "",
        "## metric",
        "",
        "Metrics of kept translations, which an [evaluation](../do/evaluate-again.md#add-a-metric-later) computes.",
        "",
        "| metric | what it is | source | better |",
        "|---|---|---|---|",
    ]
    for metric in METRICS.definitions():
        lines.append(f"| `{metric.word}` | {metric.title} | {metric.source} | {metric.better} |")
    lines += [
        "",
        "## options",
        "",
        "| option | what it is | allowed | default | of |",
        "|---|---|---|---|---|",
    ]
    for option in known_options().values():
        words = [known for family in (*FAMILIES, TASKS) for known in family.definitions()]
        owners = [f"`{known.word}`" for known in words if option.name in known.option_names]
        default = f"{option.default:g}" if isinstance(option.default, float) else option.default
        lines.append(f"| `{option.name}` | {option.title} | {option.allowed} | {default} | {', '.join(owners)} |")
    lines += [
        "",
        "## data.corpus",
        "",
        "| corpus | what it is |",
        "|---|---|",
        *(f"| `{name}` | {explain(name)[0].description} |" for name in BUILT_IN.addresses if name not in DIFFICULTIES),
        "",
        "Corpora that kdx generates at a chosen difficulty. Their options go into `data`. Accuracy is also measured by",
        "slice of the test, such as `accuracy/pairs=5-8`; a table can name such a slice as its `metric`.",
        "",
        "| corpus | task | what is asked | source | options and their defaults | slices |",
        "|---|---|---|---|---|---|",
    ]
    for corpus in DIFFICULTIES.definitions():
        keys = ", ".join(f"`{option.name}` {option.default}" for option in corpus.options)
        slices = ", ".join(corpus.slices)
        lines.append(f"| `{corpus.word}` | `{corpus.task}` | {corpus.title} | {corpus.source} | {keys} | {slices} |")
    lines += ["", "What each option means:", "", "| option | what it is | allowed | of |", "|---|---|---|---|"]
    for name in options_of_corpora():
        meanings: dict[tuple[str, str], list[str]] = {}
        for corpus in DIFFICULTIES.definitions():
            for option in corpus.options:
                if option.name == name:
                    meanings.setdefault((option.title, option.allowed), []).append(f"`{corpus.word}`")
        for (title, allowed), corpora in meanings.items():
            lines.append(f"| `data.{name}` | {title} | {allowed} | {', '.join(corpora)} |")
    return "\n".join(lines) + "\n"


def properties(known: Definition) -> str:
    """The facts that hold for a name."""
    return ", ".join(text for fact, text in PROPERTIES.items() if getattr(known, fact, False))


def factors_text() -> str:
    """What the fields of a cell and the options say of themselves, a line each."""
    of_fields: dict[str, Factor] = {}
    for name, info in CellFields.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            fields = section.model_fields.items()
            of_fields |= {f"{name}.{inner.alias or key}": of_field(inner) for key, inner in fields}
        elif name not in ("select", "components", "layers"):
            of_fields[name] = of_field(info)
    of_options = {name: of_option(option) for name, option in known_options().items()}
    of_corpora = {f"data.{name}": of_option(*declared) for name, declared in options_of_corpora().items()}
    factors = of_fields | of_options | of_corpora
    for family in FAMILIES:
        for axis in dict.fromkeys(axis for known in family.definitions() for axis in known.takes):
            follows = dict.fromkeys((*factors[axis].follows, family.axis))
            factors[axis] = factors[axis]._replace(follows=tuple(follows))
    facts = {factor: known._asdict() for factor, known in factors.items()}
    neutral = Factor()._asdict()
    return in_lines({name: {k: v for k, v in known.items() if v != neutral[k]} for name, known in facts.items()}) + "\n"


def of_field(info: FieldInfo) -> Factor:
    """What a field of a cell says of itself: the names in its annotation, and its marks."""
    names = names_in((info.annotation, *info.metadata))
    follows = (factor for mark in info.metadata if isinstance(mark, Follows) for factor in mark.factors)
    return Factor(with_none(names), NO_COST not in info.metadata, tuple(follows))


def of_option(*declared: Option) -> Factor:
    """What an option says of itself, which several corpora may declare."""
    names = (name for option in declared for name in option.words)
    return Factor(with_none(names), follows=declared[0].follows)


def with_none(names: Iterable[str]) -> tuple[str, ...]:
    """The different names, and `none`, the word of a cell without the factor; nothing if there are no names."""
    different = dict.fromkeys(names)
    return tuple(dict.fromkeys((*different, "none"))) if different else ()


def names_in(annotation: Any) -> Iterator[str]:
    """The names that a field takes of enumerations and families."""
    if isinstance(annotation, tuple):
        for inner in annotation:
            yield from names_in(inner)
    elif isinstance(annotation, type) and issubclass(annotation, StrEnum):
        yield from map(str, annotation)
    elif isinstance(annotation, OneOf):
        yield from map(str, annotation.words)
    else:
        yield from names_in((*get_args(annotation), *getattr(annotation, "__metadata__", ())))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    FACTORS.write_text(factors_text(), encoding="utf-8")
