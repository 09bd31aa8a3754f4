"""Addition of two numbers, digit by digit (Nogueira et al. 2021; Lee et al. 2023).

    2 7 + 9 5 =        answer: 1 2 2, or 2 2 1 from the last digit on

Both numbers have the same number of digits, the sum has one more, and zeros may lead. Written from the last digit on,
each digit of the sum depends on two digits and a carry; from the first on, it depends on all later digits.
"""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, answered
from kdx.words import option

PLUS, EQUALS, ZERO = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class Addition(ExamplesOneByOne):
    """The sum of two numbers, digit by digit."""

    name = "addition"
    source = "Nogueira et al. 2021; Lee et al. 2023"
    task: str = "answer"
    slices = ("carries", "digits")

    digits: int = option(3, minimum=1)
    """The most digits of each number; their number is drawn."""
    order: str = option("reversed", words=("reversed", "plain"))
    """The order of the digits of the sum: from the last digit on, or as it is read."""

    @property
    def tokens(self) -> int:
        return 3 * self.digits + 2

    @property
    def classes(self) -> int:
        return ZERO + 10

    def draw(self, random: Random) -> Example:
        digits = random.randint(1, self.digits)
        # From the last digit on.
        first, second = ([random.randrange(10) for _ in range(digits)] for _ in range(2))
        total, carries, carry = [], 0, 0
        for a, b in zip(first, second, strict=True):
            carry, digit = divmod(a + b + carry, 10)
            carries += carry
            total.append(digit)
        total.append(carry)
        prompt = [*_tokens(first[::-1]), PLUS, *_tokens(second[::-1]), EQUALS]
        answer = _tokens(total if self.order == "reversed" else total[::-1])
        return answered(prompt, answer, {"carries": carries, "digits": digits}, self.tokens)


def _tokens(digits: list[int]) -> list[int]:
    return [ZERO + digit for digit in digits]
