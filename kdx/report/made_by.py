"""What made the tables of a file: the sweeps and options of `kdx report`, which stand in the file as its command."""

import shlex
from argparse import ArgumentError, ArgumentParser
from dataclasses import dataclass, replace

from kdx.shell import kdx_command, shell_word


@dataclass(frozen=True)
class MadeBy:
    """The options that decide what a table shows."""

    sweeps: tuple[str, ...]
    table: str | None = None
    tables: str | None = None
    """The file that asks for the tables; None for those of the grid."""
    against: str | None = None
    """The paper whose published values stand beside."""
    statistics: bool = False
    paired_ar: bool = False
    notes: str = "short"

    def __str__(self) -> str:
        """The command, such as `kdx report quickstart --table main --statistics`."""
        named = (("table", self.table), ("tables", self.tables), ("against", self.against))
        options = "".join(f" --{name} {shell_word(word)}" for name, word in named if word is not None)
        flags = (("statistics", self.statistics), ("paired-ar", self.paired_ar))
        options += "".join(f" --{name}" for name, given in flags if given)
        options += f" --notes {self.notes}" if self.notes != "short" else ""
        return kdx_command("report", *self.sweeps, options=options)

    def command(self, table: str) -> str:
        """The command that makes the table of this name."""
        return str(replace(self, table=table))

    @classmethod
    def read(cls, command: str) -> "MadeBy | None":
        """The options in a command; None if it is none of `kdx report`, or was changed beyond recognition."""
        parser = ArgumentParser(add_help=False, exit_on_error=False)
        parser.add_argument("sweeps", nargs="*")
        for name in ("--table", "--tables", "--against"):
            parser.add_argument(name)
        for name in ("--statistics", "--paired-ar"):
            parser.add_argument(name, action="store_true")
        parser.add_argument("--notes", choices=("none", "short", "full"), default="short")
        try:
            program, verb, *words = shlex.split(command)
            options, unknown = parser.parse_known_args(words)
        except (ValueError, ArgumentError):
            return None
        if (program, verb) != ("kdx", "report") or unknown:
            return None
        return cls(**{**vars(options), "sweeps": tuple(options.sweeps)})
