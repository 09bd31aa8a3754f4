"""Counts and sizes as messages write them."""


def count_of(number: int, what: str) -> str:
    """Such as `1 run` or `1,200 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    number, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "bytes" else f"{number:.1f} {units[0]}"
