"""Writes docs/words.md, the words of the study, from their definitions: `python -m tests.words`; a test compares."""

from pathlib import Path

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.tasks import TASKS

FILE = Path(__file__).parents[1] / "docs" / "words.md"
FAMILIES = (KERNELS, POSITIONS, VALUES, FILTERS, NORMALISERS, ENCODINGS, MIXERS)


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
            options = ", ".join(f"`{option}`" for option in known.options)
            formula = known.formula.replace("|", "\\|")
            lines.append(f"| `{known.word}` | {known.title} | {formula} | {known.source} | {options} |")
        lines.append("")
    lines += [
        "## task",
        "",
        "| word | what is learned | data | metrics, the first selects | keys of its own |",
        "|---|---|---|---|---|",
    ]
    for task in TASKS.values():
        own = [f"`{key}`" for key in task.settings]
        own += [f"`{option.name}` ({', '.join(option.words)})" for option in task.options]
        metrics = ", ".join(task.metrics)
        lines.append(f"| `{task.word}` | {task.title} | {task.data.word} | {metrics} | {', '.join(own)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
