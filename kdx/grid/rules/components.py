"""The sources of a cell's own components, by their hashes: they belong to what the cell is."""

from kdx.attention.families import FAMILIES
from kdx.grid.fields import CellFields, Hashes
from kdx.grid.rules.options import words_of
from kdx.grid.sections import refuse
from kdx.grid.words import words_in
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.words.component import Component


def resolve_components(cell: CellFields) -> None:
    """Settles `components`; a hash that was given must be that of the source at hand."""
    used: dict[str, Component] = {}
    # Few grids have any, and those that have none may have ten thousand cells.
    if any(family.outside for family in (*FAMILIES, TASKS)):
        words = words_in(words_of(cell).plain)
        used = {word: family.outside[word] for family, word in words if word in family.outside}
    if cell.data.corpus in DIFFICULTIES.outside:
        used[cell.data.corpus] = DIFFICULTIES.outside[cell.data.corpus]
    for word, component in used.items():
        if cell.components.get(word, component.sha256) != component.sha256:
            problem = f"the source of `{word}` at hand is not the one that the cell was made with"
            raise refuse("components", problem, hint="kdx export --components --to FOLDER writes that one out")
    cell.settle(components=Hashes({word: component.sha256 for word, component in sorted(used.items())}))
