"""Writes docs/reference/words.md, the values of a grid, and kdx/words/factors.json: `python -m tests.words`."""

from pathlib import Path
from typing import Any

from kdx.attention.families import FAMILIES
from kdx.grid.cell_selector import factors, known_words
from kdx.grid.fields import CellFields
from kdx.grid.sections import NO_COST, Follows
from kdx.grid.words import known_options
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES, options_of_corpora
from kdx.words.family import Definition
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
            row = [f"`{known.word}`", known.title, known.formula.replace("|", "\\|"), known.source]
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
        sliced = "; ".join(f"{' and '.join(one.metrics)} by `{one.respect}`, {one.title}" for one in task.slicings)
        lines.append(f"| `{task.word}` | {task.title} | {task.data.word} | {metrics} | {sliced} | {', '.join(own)} |")
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
    return in_lines({factor: facts(factor) for factor in factors()}) + "\n"


def facts(factor: str) -> dict[str, Any]:
    section, _, name = factor.rpartition(".")
    model: Any = CellFields.model_fields[section].annotation if section else CellFields
    marks = [mark for key, field in model.model_fields.items() if name in (key, field.alias) for mark in field.metadata]
    follows = [other for mark in marks if isinstance(mark, Follows) for other in mark.factors]
    if not section and factor in known_options():
        follows = [*known_options()[factor].follows]
    plain = Factor(known_words(factor), NO_COST not in marks, tuple(follows))._asdict()
    return {fact: value for fact, value in plain.items() if value != getattr(Factor(), fact)}


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    FACTORS.write_text(factors_text(), encoding="utf-8")
