"""An author's own tests of a component, from the cases that kdx has."""

from typing import ClassVar

import pytest

from kdx.attention.interfaces import KernelFunction
from kdx.errors import ComponentError
from kdx.testing import ComponentCase
from kdx.words.option import option


class Cauchy(KernelFunction):
    """A heavy tail."""

    gives = "weight"
    bandwidth: float = option(1.0, above=0)

    def weight(self, query, key):
        squares = (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)
        return 1 / (1 + squares / self.bandwidth**2)


class Indexed(Cauchy):
    """A kernel that looks at where keys stand in the call."""

    def weight(self, query, key):
        return super().weight(query, key) * (1 + key.new_ones(key.size(-2)).cumsum(0).flip(0))


class Cancelling(Cauchy):
    """A kernel whose terms cancel, but for what half precision rounds off."""

    def weight(self, query, key):
        square = (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)
        return 1 + 1e4 * square - 1e4 * square


class TestCauchy(ComponentCase):
    component = Cauchy
    options: ClassVar = {"bandwidth": 2.0}


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_number_that_is_not_finite_is_said_first_and_alone(number):
    class Case(ComponentCase):
        component = type("Wrong", (Cauchy,), {"weight": lambda self, q, k: q @ k.mT * float(number)})

    with pytest.raises(ComponentError, match=r"weight gives -?(nan|inf) for a query at position 0 and a key at 0"):
        Case().test_gives_what_its_class_declares()


def test_a_property_that_is_missed_says_what_is_wrong_and_where():
    class Case(ComponentCase):
        component = Cancelling

    with pytest.raises(AssertionError, match=r"in bf16 it loses more digits than its inputs do; see .* in Cancelling,"):
        Case().test_has_the_property("half precision")
    Case().test_has_the_property("rows of a batch are independent")


def test_what_depends_on_the_length_of_a_row_is_said_at_once():
    class Case(ComponentCase):
        component = Indexed

    with pytest.raises(ComponentError, match=r"or on keys after the query; .*; first at position 1"):
        Case().test_gives_what_its_class_declares()
