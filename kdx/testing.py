"""Cases for your own tests of a custom component.

In a test file, inherit from the case and name the class:

    from kdx.testing import ComponentCase
    from my_kernels import Cauchy


    class TestCauchy(ComponentCase):
        component = Cauchy
        options = {"bandwidth": 2.0}

pytest then runs a test for each property that an attention with the component must have, see
`kdx.attention.verification.component`. `kdx verify --part` checks the same properties, and `kdx sweep` rehearses those
that would make a table wrong before it starts a run.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kdx.attention.interfaces import Word
from kdx.attention.verification.component import MEANING, findings_of
from kdx.attention.verification.propositions import PropositionError


class ComponentCase:
    """The tests of a kernel, position scheme, value function, filter, normaliser or encoding."""

    component: ClassVar[type[Word]]
    """The class under test."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Values of its options; the others have their defaults."""
    device: ClassVar[str] = "cpu"

    def test_gives_what_its_class_declares(self) -> None:
        """Shapes, dtypes, finite numbers, gradients, independence of later tokens and of torch's global state."""
        _findings(type(self))


_FOUND: dict[type, tuple[PropositionError, ...]] = {}


def _findings(case: type[ComponentCase]) -> tuple[PropositionError, ...]:
    """What was found of a case, computed once for all its tests."""
    if case not in _FOUND:
        _FOUND[case] = tuple(findings_of(case.component, case.device, case.options))
    return _FOUND[case]


def _test_of(proposition: str) -> Callable[[ComponentCase], None]:
    def test(self: ComponentCase) -> None:
        missed = [one for one in _findings(type(self)) if one.proposition == proposition and not one.holds]
        variants = ", ".join(f"{one.variant} ({one.error:.2g} roundings)" for one in missed)
        assert not missed, f"{MEANING[proposition]}; in {variants}"

    return test


for _proposition in MEANING:
    setattr(ComponentCase, f"test_{_proposition.replace(' ', '_')}", _test_of(_proposition))
