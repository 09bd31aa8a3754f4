"""The settings of a cell as YAML."""

from collections.abc import Mapping
from typing import Any

import yaml


def as_yaml(plain: Mapping[str, Any]) -> str:
    """A mapping as YAML, with one line for each of its keys where it fits."""
    text: str = yaml.safe_dump(dict(plain), default_flow_style=None, sort_keys=False, width=110, allow_unicode=True)
    return text
