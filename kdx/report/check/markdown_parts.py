"""Reads the tables of a text in Markdown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdx.report.check.parts import Part
from kdx.report.wording import LEVELS

_ROW = re.compile(r"\s*\|(.*)\|\s*")
_BAR = re.compile(r"(?<!\\)\|")
_LEFT = re.compile(r"\s*:-+\s*")


def parts_of_markdown(text: str) -> Iterator[Part]:
    """The tables of a Markdown text, each with the bold line above it and the notes below."""
    title, lines = "", text.splitlines()
    index, part = 0, None
    paragraphs = [""]
    while index < len(lines):
        block = []
        while index < len(lines) and (row := _ROW.fullmatch(lines[index])):
            block.append([" ".join(cell.split()) for cell in _BAR.split(row[1])])
            index += 1
        if len(block) > 1:
            if part:
                yield replace(part, notes=tuple(filter(None, paragraphs)))
            part, paragraphs = _part_of_block(title, block), [""]
        if index < len(lines):
            line = " ".join(lines[index].split())
            title = line or title
            if line.startswith("**"):  # the title of the next table, perhaps right behind a note
                paragraphs.append(line)
            elif line:
                paragraphs[-1] = f"{paragraphs[-1]} {line}".strip()
            elif paragraphs[-1]:
                paragraphs.append("")
            index += 1
    if part:
        yield replace(part, notes=tuple(filter(None, paragraphs)))


def _part_of_block(title: str, block: Sequence[Sequence[str]]) -> Part:
    header, rules, *rows = block
    names = sum(_LEFT.fullmatch(rule) is not None for rule in rules)
    places: dict[str, dict[str, str]] = {}
    for row in rows:
        for column, shown in zip(header[names:], row[names:], strict=False):
            # A row that stands there twice is another value than one row.
            place = places.setdefault(f"{LEVELS.join(row[:names])}, {column}", {"": ""})
            place[""] = f"{place['']} {shown}".strip()
    return Part(title, tuple(header), places)
