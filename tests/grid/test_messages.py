"""Every message of a wrong grid, as it was recorded: where it points, what is wrong, what is allowed, what to do.

`messages.json` holds wrong grids: those of the other tests, those that people wrote, and shipped grids with one mistake
drawn at random. `make golden SET=standing` records their messages anew; read its diff. A message may become better, but
a fault may neither get lost nor lose its place.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from each import each

from kdx.errors import Faults, KdxError
from kdx.grid.load import load_grid

FILE = Path(__file__).with_name("messages.json")
CASES = json.loads(FILE.read_text())
LONGEST = 200  # characters; of longer texts, such as a list of all keys, the beginning is kept


def messages(case: dict[str, Any], folder: Path) -> list[list[str | None]]:
    """The place, problem, allowed values and hint of each fault of a grid, in the order of the file."""

    def kept(text: Any) -> str | None:
        text = text and str(text).replace(f"{folder}/", "")
        return f"{text[:120]}…" if text and len(text) > LONGEST else text

    def message(fault: KdxError) -> list[str | None]:
        return [kept(fault.place), kept(fault.problem), kept(fault.allowed), kept(fault.hint)]

    for name, text in case["files"].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    try:
        load_grid(folder / case["grid"], **case.get("options", {}))
    except Faults as error:
        return [message(fault) for fault in error.faults]
    return []


@each("case", CASES, told=lambda case: case["files"][case["grid"]])
def test_a_wrong_grid_has_all_of_its_messages(case, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    assert messages(case, folder) == case["faults"]


def record() -> None:
    lines = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(json.dumps(case | {"faults": messages(case, Path(folder))}))
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record()
