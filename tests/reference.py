"""Writes what docs/reference copies from the code, each part below its mark: `python -m tests.reference`."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from html import escape
from itertools import chain
from pathlib import Path
from textwrap import dedent
from typing import Any

import kdx
from kdx import api, attention
from kdx.cli.app import Kdx
from kdx.grid.explain import explain, key_list
from kdx.grid.field_types import descriptions
from kdx.report.papers import paper_file
from kdx.run_files import load_run
from kdx.store.schema import metadata
from kdx.store.views import VIEWS
from tests.cli.verbs import all_commands
from tests.words import names_in

PAGES = Path(__file__).parents[1] / "docs" / "reference"
PART = re.compile(r"(<!-- make reference: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARED = ("Common", "Hardware", "Slurm")
"""Panels of options that many commands have."""


def filled(page: str) -> str:
    """The page with all of its parts as the code is now."""
    return PART.sub(lambda part: "\n".join((part[1], *PARTS[part[2]](), part[3])), page)


def table(*titles: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Lines of a table, without columns that have nothing; no lines for no rows."""
    rows = [[" ".join(in_table(cell).split()) for cell in row] for row in rows]
    columns = [column for column in zip(titles, ["---"] * len(titles), *rows, strict=True) if any(column[2:])]
    if rows:
        yield from (*(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)), "")


def in_table(text: str) -> str:
    """A text whose bars part no cells, neither on GitHub nor on the site, which differ on `\\|` in code."""

    def as_html(span: re.Match[str]) -> str:
        return f"<code>{escape(span[1]).replace('*', '&#42;')}</code>"

    return re.sub(r"`([^`]*\|[^`]*)`", as_html, text).replace("|", "&#124;")


def code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words if word)


def block(*lines: str, language: str) -> tuple[str, ...]:
    return ("<!-- not run: generated -->", f"```{language}", *lines, "```", "")


def commands() -> Iterator[str]:
    shared: dict[str, dict[str, Any]] = {panel: {} for panel in SHARED}
    room = ""
    for name, command in all_commands():
        if hasattr(command, "commands"):
            continue
        if room != (room := Kdx.verbs[name.split()[1]].panel):
            yield from (f"## {room}", "")
        text, *examples = command.help.split("\n\nExample: ")
        usage = command.collect_usage_pieces(command.context_class(command))
        yield from (f"### {name}", "", text, "", *block(" ".join((name, *usage)), language="bash"))
        own = [each for each in command.params if each.rich_help_panel not in SHARED]
        yield from parameters(sorted(own, key=lambda each: each.param_type_name))
        for panel, known in shared.items():
            theirs = {each.opts[0]: each for each in command.params if each.rich_help_panel == panel}
            known |= theirs
            if theirs:
                yield from (f"[{panel} options](#{panel.lower()}-options): {code(*theirs)}", "")
        if examples:
            yield from ("For example:", "", *block(*examples, language="bash"))
    for panel, known in shared.items():
        yield from (f"## {panel} options", "", *parameters(known.values()))


def parameters(known: Iterable[Any]) -> Iterator[str]:
    rows = []
    for each in known:
        names = [each.display_name_raw]
        if each.param_type_name == "option":
            value = re.sub("<.*str.*>", "TEXT", re.sub("<(int|float).*>", "N", f" {each.display_type_rich(None)}"))
            names = [option + value * (not each.is_flag) for option in each.opts]
        rows.append((code(*names), each.help, ", else ".join(filter(None, (code(each.envvar or ""), default(each))))))
    yield from table("argument or option", "meaning", "default", rows=rows)


def default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    return "" if parameter.default in (None, False) else code(str(parameter.default))


def variables() -> Iterator[str]:
    takers: dict[str, dict[str, Any]] = {}
    for name, command in all_commands():
        for option in command.params:
            if option.envvar:
                takers.setdefault(option.envvar, {})[name] = option
    rows = []
    for variable, options in takers.items():
        option = next(iter(options.values()))
        panel = option.rich_help_panel
        of = f"[{panel}](commands.md#{panel.lower()}-options)" if panel else code(*options)
        rows.append((code(variable), code(option.opts[0]), of, option.help, default(option)))
    yield from table("variable", "option", "of", "meaning", "default", rows=rows)


def keys(*groups: str) -> Iterator[str]:
    """Keys of a grid but for the options of its words, which words.md has."""
    headings = re.findall(r"^## (.*)$", (PAGES / "words.md").read_text(encoding="utf-8"), re.MULTILINE)
    rows = []
    for key in chain.from_iterable(key_list()[group] for group in groups):
        (known, *_) = explain(key)
        heading = "filter" if key.startswith("filter.") else key
        link = f"[one of these](words.md#{heading.replace('.', '')})"
        allowed = known.allowed.replace("one of these values", link if heading in headings else code(*known.values))
        if not known.of:
            rows.append((code(key), known.description.replace("None", "null"), allowed, code(known.default)))
    yield from table("key", "meaning", "values", "default", rows=rows)


def claims() -> Iterator[str]:
    for name in ("PaperFile", "PublishedTable", "PublishedCell", "Claim", "Rule", "Contrast"):
        model = getattr(paper_file, name)
        title, _, text = inspect.getdoc(model).partition(": ")
        yield from (f"## {title}", "", sentence(text), "")
        rows = []
        for key, info in model.model_fields.items():
            values = code(*names_in((info.annotation, *info.metadata)))
            required = "required" if info.is_required() else ""
            rows.append((code(key), descriptions(model)[key].replace("None", "null"), values, required))
        yield from table("key", "meaning", "values", "default", rows=rows)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def views() -> Iterator[str]:
    described: dict[tuple[str, str], str] = {}
    for view in VIEWS:
        earlier: dict[str, list[str]] = {}
        for column in view.columns.items():
            earlier.setdefault(described.setdefault(column, view.name), []).append(column[0])
        like = {other: columns for other, columns in earlier.items() if other != view.name and len(columns) > 1}
        own = [(code(name), text) for name, text in view.columns.items() if described[name, text] not in like]
        yield from (f"### {view.name}", "", sentence(view.comment), "", *table("column", "meaning", rows=own))
        yield from chain.from_iterable((f"As in `{other}`: {code(*like[other])}.", "") for other in like)


def tables() -> Iterator[str]:
    known = metadata.tables.values()
    rows = ((code(each.name), str(each.comment), code(*each.c.keys())) for each in known)
    yield from table("table", "contents", "columns", rows=rows)


def python(module: Any, *names: str) -> Iterator[str]:
    for name in names:
        known = getattr(module, name)
        if inspect.ismodule(known):
            continue
        yield from (f"### {module.__name__}.{name}", "")
        yield from of_class(known) if isinstance(known, type) else of_function(known)


def of_class(known: type) -> Iterator[str]:
    if is_dataclass(known):
        yield from docstring(known)
        types = {each.name: inspect.formatannotation(each.type) for each in fields(known) if each.name[0] != "_"}
        shown = {name: re.sub(r"[a-z_.]+\.(?=[A-Z])", "", kind) for name, kind in types.items()}
        rows = [(code(name), code(kind), descriptions(known).get(name, "")) for name, kind in shown.items()]
        yield from table("attribute", "type", "meaning", rows=rows)
    else:
        made = signature(vars(known)["__init__"]).replace("def __init__", known.__name__).removesuffix(" -> None")
        yield from (*block(made, language="py"), *docstring(known))
    methods = [method for name, method in inspect.getmembers(known, inspect.isfunction) if name[0] != "_"]
    own = [method for method in methods if method.__module__.startswith("kdx.") and method.__doc__]
    rows = [(code(signature(each).removeprefix("def ")), each.__doc__) for each in own if "\n" not in each.__doc__]
    yield from table("method", "meaning", rows=rows)
    for method in own:
        if "\n" in method.__doc__:
            yield from (f"#### {known.__name__}.{method.__name__}", "", *of_function(method))


def of_function(function: Callable[..., Any]) -> Iterator[str]:
    yield from (*block(signature(function), language="py"), *docstring(function))


def signature(function: Callable[..., Any]) -> str:
    """How it is called, as its source has it."""
    source = dedent(inspect.getsource(function))
    (node,) = ast.parse(source).body
    head = "\n".join(source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1])
    return re.sub(r"self(,\s+|(?=\)))", "", head, count=1).removesuffix(":")


def docstring(known: Any) -> Iterator[str]:
    """The docstring, written in Google's style, in Markdown."""
    text, *sections = re.split(r"^(Args|Returns|Yields|Raises):\n", inspect.getdoc(known) or "", flags=re.MULTILINE)
    yield from (text.rstrip(), "")
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        entries = re.split(r"\n(?=\S)", dedent(body).strip())
        named = (re.sub(r"^(\w+(, \w+)*):", r"- `\1`:", " ".join(each.split())) for each in entries)
        yield from (f"{title}:", "", *named, "")


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "variables": variables,
    "grid": lambda: keys("grid"),
    "cell": lambda: keys("cell", "filter"),
    **{name: lambda name=name: keys(name) for name in ("data", "model", "training", "evaluation", "select")},
    "claims": claims,
    "views": views,
    "tables": tables,
    "functions": lambda: python(kdx, *(name for name in kdx.__all__ if name[0] != "_")),
    "records": lambda: python(api, *(name for name in api.__all__ if name[0].isupper())),
    "trained": lambda: python(load_run, "LoadedRun"),
    "attention": lambda: python(attention, *attention.__all__),
}

if __name__ == "__main__":
    for page in PAGES.glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
