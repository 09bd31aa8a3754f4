"""The settings of a cell as YAML."""

from collections.abc import Mapping
from typing import Any

import yaml

_WIDTH, _LEAST, _BEYOND = 110, 20, 32
"""Columns of a line, at most and at least, and how far an entry that begins before its end may reach beyond it."""


def as_yaml(plain: Mapping[str, Any], columns: int | None = None) -> str:
    """A mapping as YAML, with one line for each of its keys where it fits.

    Args:
        columns: of a terminal that is to show it.
    """
    width = _WIDTH if columns is None else max(min(_WIDTH, columns - _BEYOND), _LEAST)
    text: str = yaml.safe_dump(dict(plain), default_flow_style=None, sort_keys=False, width=width, allow_unicode=True)
    return text
