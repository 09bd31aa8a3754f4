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

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kdx.attention.interfaces import Word
from kdx.attention.verification.cases import Finding, findings_of
from kdx.attention.verification.properties import PROPERTIES, Property


class ComponentCase:
    """The tests of a kernel, position scheme, value function, filter, normaliser or encoding."""

    component: ClassVar[type[Word]]
    """The class under test."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Values of its options; other options have their defaults."""
    device: ClassVar[str] = "cpu"

    def test_gives_what_its_class_declares(self) -> None:
        """Check shapes, dtypes, finite numbers, gradients, independence of later tokens and of torch's global state."""
        _findings(type(self))


_FINDINGS: dict[type, tuple[Finding, ...]] = {}


def _findings(case: type[ComponentCase]) -> tuple[Finding, ...]:
    """Return the findings of a case, computed once for all its tests."""
    if case not in _FINDINGS:
        _FINDINGS[case] = tuple(findings_of(case.component, case.device, case.options))
    return _FINDINGS[case]


def _test_of(known: Property) -> Callable[[ComponentCase], None]:
    def test(self: ComponentCase) -> None:
        missed = [finding for finding in _findings(type(self)) if finding.check == known.name and not finding.holds]
        variants = ", ".join(f"{finding.variant} ({finding.error:.2g} roundings)" for finding in missed)
        assert not missed, f"{known.missed}; in {variants}"

    return test


for _property in PROPERTIES:
    setattr(ComponentCase, f"test_{_property.name.replace(' ', '_')}", _test_of(_property))
