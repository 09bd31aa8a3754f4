"""Cases for your own tests of a custom component.

In a test file, inherit from the case and name the class:

    from kdx.testing import ComponentCase
    from my_kernels import Cauchy


    class TestCauchy(ComponentCase):
        component = Cauchy
        options = {"bandwidth": 2.0}

pytest then runs a test for each property that an attention with the component must have, see
`kdx.attention.verification.properties`. `kdx verify --component` checks the same properties, and `kdx sweep` rehearses
those that would make a table wrong before it starts a run.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from kdx.attention.interfaces import Word
from kdx.attention.verification.cases import Finding, findings_of
from kdx.attention.verification.properties import PROPERTIES

_FINDINGS: dict[type, tuple[Finding, ...]] = {}
"""Case → its findings, computed once for all its tests."""


class ComponentCase:
    """The tests of a kernel, position scheme, value function, filter, normaliser or encoding."""

    component: ClassVar[type[Word]]
    """The class under test."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Values of its options; other options have their defaults."""
    device: ClassVar[str] = "cpu"

    @classmethod
    def findings(cls) -> tuple[Finding, ...]:
        """Check every property of attentions with the component; raises what `findings_of` does."""
        if cls not in _FINDINGS:
            _FINDINGS[cls] = tuple(findings_of(cls.component, cls.device, cls.options))
        return _FINDINGS[cls]

    def test_gives_what_its_class_declares(self) -> None:
        """Check shapes, dtypes, finite numbers, gradients, independence of later tokens and of torch's global state."""
        self.findings()

    @pytest.mark.parametrize("name", [known.name for known in PROPERTIES])
    def test_has_the_property(self, name: str) -> None:
        """Check that no attention with the component misses a property by more than rounding."""
        missed = [finding for finding in self.findings() if finding.check == name and not finding.holds]
        variants = ", ".join(f"{finding.variant} ({finding.error:.2g} roundings)" for finding in missed)
        (explained,) = (known.missed for known in PROPERTIES if known.name == name)
        assert not missed, f"{explained}; in {variants}"
