"""Writes docs/words.md, the words of the study, from their definitions: `python -m tests.words`; a test compares."""

from pathlib import Path

from kdx.attention.families import FAMILIES
from kdx.data.corpora import DIFFICULTIES, options_of_corpora
from kdx.grid.words import known_options
from kdx.tasks import TASKS

FILE = Path(__file__).parents[1] / "docs" / "words.md"


def text() -> str:
    """The page."""
    lines = [
        "# The words of the study",
        "",
        "Each word is a class in `kdx/attention/`, which says what stands here; `make words` writes this page.",
        "",
    ]
    for family in FAMILIES:
        lines += [
            f"## {family.axis}",
            "",
            "| word | what it is | formula | source | keys of its own |",
            "|---|---|---|---|---|",
        ]
        for known in family.definitions():
            own = ", ".join(f"`{key}`" for key in (*known.takes, *known.option_names))
            formula = known.formula.replace("|", "\\|")
            lines.append(f"| `{known.word}` | {known.title} | {formula} | {known.source} | {own} |")
        lines.append("")
    lines += [
        "## task",
        "",
        "A test measures some metrics by slice as well, such as `perplexity/context=5-8`, which a table may have for",
        "its `metric`; the table says what is counted.",
        "",
        "| word | what is learned | data | metrics, the first selects | by slice | keys of its own |",
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
        "## keys of words and tasks",
        "",
        "| key | what it is | allowed | unless said otherwise | of |",
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
        "Corpora that kdx generates at a difficulty. Each key goes into `data`; a test tells accuracy by slices,",
        "such as `accuracy/pairs=5-8`, which a table may have for its `metric`.",
        "",
        "| word | task | what is asked | source | keys of its own, with what they are unless said otherwise | slices |",
        "|---|---|---|---|---|---|",
    ]
    for corpus in DIFFICULTIES.definitions():
        keys = ", ".join(f"`{option.name}` {option.default}" for option in corpus.options)
        slices = ", ".join(corpus.slices)
        lines.append(f"| `{corpus.word}` | `{corpus.task}` | {corpus.title} | {corpus.source} | {keys} | {slices} |")
    lines += ["", "What each key means:", "", "| key | what it is | allowed | of |", "|---|---|---|---|"]
    for name in options_of_corpora():
        meanings: dict[tuple[str, str], list[str]] = {}
        for corpus in DIFFICULTIES.definitions():
            for option in corpus.options:
                if option.name == name:
                    meanings.setdefault((option.title, option.allowed), []).append(f"`{corpus.word}`")
        for (title, allowed), corpora in meanings.items():
            lines.append(f"| `data.{name}` | {title} | {allowed} | {', '.join(corpora)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
