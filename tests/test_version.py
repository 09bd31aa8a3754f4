"""One version, told alike wherever it is told."""

import tomllib
from pathlib import Path

import kdx
from kdx.version import VERSION


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert kdx.__version__ == VERSION == project["version"]
