"""Writes docs/words.md, the words of the study, from their definitions: `python -m tests.words`; a test compares."""

from importlib import import_module
from pathlib import Path

from kdx.attention.families import FAMILIES
from kdx.data.corpora import BUILT_IN
from kdx.data.difficulty import CorpusOption, all_options, options_of, slices_of
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
        "| word | what is learned | data | metrics, the first selects | keys of its own |",
        "|---|---|---|---|---|",
    ]
    for task in TASKS.values():
        own = [f"`{key}`" for key in task.settings]
        own += [f"`{option.name}`" for option in task.options]
        metrics = ", ".join(task.metrics)
        lines.append(f"| `{task.word}` | {task.title} | {task.data.word} | {metrics} | {', '.join(own)} |")
    lines += [
        "",
        "## keys of words and tasks",
        "",
        "| key | what it is | allowed | unless said otherwise | of |",
        "|---|---|---|---|---|",
    ]
    for option in known_options().values():
        families = [(family, known) for family in FAMILIES for known in family.definitions()]
        owners = [f"`{known.word}`" for _, known in families if option.name in known.option_names]
        owners += [f"`{task.word}`" for task in TASKS.values() if option.name in {one.name for one in task.options}]
        default = f"{option.default:g}" if isinstance(option.default, float) else option.default
        lines.append(f"| `{option.name}` | {option.title} | {option.allowed} | {default} | {', '.join(owners)} |")
    lines += [
        "",
        "## data.corpus",
        "",
        "Corpora that kdx generates at a difficulty. Each key goes into `data`; a test tells accuracy by slices,",
        "such as `accuracy/pairs=5-8`, which a table may have for its `metric`.",
        "",
        "| word | task | what is asked | keys of its own, with what they are unless said otherwise | slices |",
        "|---|---|---|---|---|",
    ]
    for corpus, address in BUILT_IN.addresses.items():
        if options := options_of(corpus):
            told = (import_module(address.partition(":")[0]).__doc__ or "").partition("\n\n")[0].partition(".\n")[0]
            keys = ", ".join(f"`{option.name}` {option.default}" for option in options)
            slices = ", ".join(slices_of(corpus))
            told = " ".join(told.split()).removesuffix(".")
            lines.append(f"| `{corpus}` | `{BUILT_IN[corpus].task}` | {told} | {keys} | {slices} |")
    lines += ["", "What each key means:", ""]
    for name, corpora in all_options().items():
        described = " ".join(f"{option.description}{_words(option)}" for option in corpora.values())
        lines.append(f"- `data.{name}`: {described}")
    return "\n".join(lines) + "\n"


def _words(option: CorpusOption) -> str:
    return f" ({', '.join(option.words)})" if option.words else ""


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
