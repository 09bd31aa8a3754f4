"""Settings as YAML."""

import yaml

from kdx.report.writers.settings import as_yaml


def test_each_key_has_a_line_and_the_order_stays():
    plain = {"kernel": "rbf", "data": {"corpus": "copy", "length": 4}, "position": []}
    text = as_yaml(plain)
    assert text.splitlines() == ["kernel: rbf", "data: {corpus: copy, length: 4}", "position: []"]
    assert yaml.safe_load(text) == plain
