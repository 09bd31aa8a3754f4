"""What a grid asks for: its cells, its seeds, and the tables to be made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, reduce
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, WithJsonSchema

from kdx.errors import KdxError, Place
from kdx.grid.cell_selector import ANY_WORDS, CellSelector
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.grid.field_types import Margin, Section, ToList, as_list
from kdx.grid.seeds import SeedRule, rule_of
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import Search

MOST_FACTORS = 20
"""Factors of a table's rows, and of its columns."""


class Shown(StrEnum):
    """The scores that a place of a table may hold."""

    BEST_SEED = "best-seed"
    """The test score of the seed with the best validation score."""
    MEAN = "mean"
    """The mean of the test scores over seeds."""


NAMED_ALONE = ""
"""The factor of a baseline that is a word alone, until it is found among the table's factors."""


def _named_alone(baseline: Any) -> Any:
    return baseline if isinstance(baseline, Mapping | list | None) else {NAMED_ALONE: baseline}


_BASELINE = {"anyOf": [ANY_WORDS, {"type": ["string", "number", "boolean", "null"]}]}


class TableSpec(Section):
    """One table of the report: which factors make its rows and its columns."""

    name: str = Field(min_length=1)
    """What the table is called; no two of a grid share a name."""
    caption: str = ""
    """Text after the name in the title."""
    rows: Annotated[tuple[str, ...], ToList(as_list)] = Field(min_length=1, max_length=MOST_FACTORS)
    """Axes or keys; each combination of their values is a row."""
    columns: Annotated[tuple[str, ...], ToList(as_list)] = Field((), max_length=MOST_FACTORS)
    """Axes or keys; each combination of their values is a column."""
    where: CellSelector = Field(default_factory=dict)
    """Axis or key → its value in the table's cells; other cells are left out."""
    metric: str | None = None
    """Test metric of every cell, such as `bleu`, or the validation metric that it was selected by, such as
    `valid/bleu`; default: that metric on the test split."""
    cell: Shown = Shown.BEST_SEED
    """What each place holds: `best-seed`, the test score of the seed with the best validation score, or `mean`."""
    baseline: Annotated[CellSelector, BeforeValidator(_named_alone), WithJsonSchema(_BASELINE)] = Field(
        default_factory=dict
    )
    """Axis or key of the rows or columns → its value, or the value alone. A cell is compared with the one that differs
    from it in this alone."""
    margin: dict[str, Margin] = Field(default_factory=dict)
    """Metric → the difference below which two cells count as equal: in its units, or as a share such as 1%."""


@dataclass(frozen=True)
class PlannedCell:
    """One cell of a plan."""

    id: str
    """Hash of the resolved cell (`kdx.grid.identity`), 32 hexadecimal digits."""
    ordinal: int
    """Its place in the plan, from 0."""
    labels: Mapping[str, str]
    """Axis → the choice, as the grid words it: `approach` → "Vaswani et al. (2017), Eq. 4"; `none` for an option
    that no name of the cell has."""
    spec: CellSpec
    settings: tuple[Node, ...] = field(default=(), compare=False, repr=False)
    """What its grid sets, each over the ones before; none where the plan does not come from a file."""
    search: Search | None = None
    """That finds the cell to stand here; None: nothing of the cell is tuned."""
    won: bool = False
    """Whether it is the one that its search found; until then it is a template, and is not trained."""

    def __repr__(self) -> str:
        return f"<cell {self.id[:8]}: {', '.join(self.labels.values())}>"

    def place(self, key: str) -> Place | None:
        """Return the place of the value of a dotted key, such as `data.corpus`, or of the nearest value around it."""
        return reduce(Node.overlaid, self.settings).at(tuple(key.split("."))) if self.settings else None


_HASHES = TypeAdapter(dict[str, str])
RunKey = tuple[str, int, str | None]
"""What makes a run this one and no other, whatever its generation: (cell id, seed, search id), without a search for a
run that sweeps plan."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan: a cell with a seed. A run of a trial belongs to its search alone and is not tested."""

    cell: PlannedCell
    seed: int
    search_id: str | None = None
    """The search whose trial it is; None if sweeps plan it."""
    rivals: str | None = None
    """What its search judges it against (`kdx.tune.known_trial.Rivals`); None if it runs to its end."""

    @property
    def key(self) -> RunKey:
        """What makes it this run and no other."""
        return self.cell.id, self.seed, self.search_id


_OfACell = tuple[tuple[ResolvedEvaluation, ...], tuple[tuple[EvaluationRequest, str], ...]]


@dataclass(frozen=True)
class Plan:
    """A grid, expanded."""

    name: str
    cells: tuple[PlannedCell, ...]
    seeds: tuple[int, ...]
    tables: tuple[TableSpec, ...] = ()
    axes: tuple[str, ...] = ()
    """The axes that vary, in the order of the grid; the rows of the table that is made when none is asked for."""
    description: str = ""
    command: str = ""
    """The one that planned it, as far as it decides the plan."""
    given: tuple[str, ...] = ()
    """Each `key=value` that `--set` laid over what the grid says."""
    file: str = ""
    """Absolute path of the grid; empty where it is not known."""
    evaluations: tuple[EvaluationRequest, ...] = ()
    """Further readings of each run that completes."""
    seed_rule: SeedRule | None = None
    """Which of the seeds a cell needs; None: all of them."""
    listed: tuple[PlannedRun, ...] | None = None
    """The only runs that are wanted of it, in their order; None: each of its cells with each of its seeds."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Lines on the grid that its author should know, such as a learning rate that never reaches its peak."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """File, relative to the folder of the grid → the text of the grid and of each that it extends, the grid first."""

    @classmethod
    def recorded(cls, name: str, cells: tuple[PlannedCell, ...], grid: Mapping[str, Any]) -> "Plan":
        """Return the plan of a sweep from its cells and from what `Plan.grid` wrote.

        Raises:
            ValidationError: this kdx does not know a table, an evaluation or the rule for seeds.
        """
        return cls(
            name,
            cells,
            tuple(grid.get("seeds", ())),
            tuple(TableSpec.model_validate(table) for table in grid.get("tables", ())),
            tuple(grid.get("axes", ())),
            grid.get("description", ""),
            grid.get("command", ""),
            tuple(grid.get("given", ())),
            grid.get("file", ""),
            evaluations=tuple(
                EvaluationRequest(
                    each["name"],
                    EvaluationSettings.model_validate(each["settings"]),
                    recorded=_HASHES.validate_python(each.get("components", {})),
                )
                for each in grid.get("evaluations", ())
            ),
            seed_rule=rule_of(grid),
        )

    def __repr__(self) -> str:
        return f"<plan {self.name}: {len(self.runs)} runs of {len(self.cells)} cells>"

    @property
    def trained(self) -> tuple[PlannedCell, ...]:
        """All cells but templates whose search has not found the cell to stand in their place."""
        return tuple(cell for cell in self.cells if cell.search is None or cell.won)

    @property
    def searched(self) -> bool:
        """Whether some cell is still a template."""
        return len(self.trained) < len(self.cells)

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """The runs in their order: a seed of every cell first, then the next seed; equal cells share their runs.

        So an interrupted night still gives a whole, thin table.
        """
        if self.listed is not None:
            return self.listed
        distinct = {cell.id: cell for cell in reversed(self.trained)}
        cells = sorted(distinct.values(), key=lambda cell: cell.ordinal)
        return tuple(PlannedRun(cell, seed) for seed in self.seeds for cell in cells)

    def evaluations_of(self, cell_id: str) -> tuple[ResolvedEvaluation, ...]:
        """Return the evaluations that the runs of a cell can have, in the order of the grid."""
        return self._evaluations.get(cell_id, ((), ()))[0]

    def impossible_evaluations(self, cell_id: str) -> tuple[tuple[EvaluationRequest, str], ...]:
        """Return the evaluations of its task that runs of a cell cannot have but runs of others can, with reasons."""
        return self._evaluations.get(cell_id, ((), ()))[1]

    @cached_property
    def _evaluations(self) -> dict[str, _OfACell]:
        """Cell id → both of the above."""
        return {cell.id: self._resolved(cell.spec) for cell in self.cells} if self.evaluations else {}

    def _resolved(self, spec: CellSpec) -> _OfACell:
        able, impossible = [], []
        for request in self.evaluations:
            try:
                able.append(resolve_evaluation(spec, request))
            except KdxError as error:
                if request.is_of(spec.task):
                    impossible.append((request, error.problem))
        return tuple(able), tuple(impossible)

    @property
    def components(self) -> dict[str, str]:
        """Word → hash of the source, of every custom component of its cells, searches and evaluations."""
        searches = (cell.search for cell in self.cells if cell.search)
        hashes = {word: sha256 for search in searches for (_, word), sha256 in search.components.items()}
        hashes |= {word: sha256 for request in self.evaluations for word, sha256 in request.components.items()}
        return hashes | {word: sha256 for cell in self.cells for word, sha256 in cell.spec.components.items()}

    @property
    def grid(self) -> dict[str, Any]:
        """The parts of the grid that concern no single cell, as JSON; the sweep keeps them to make the plan again."""
        return {
            "description": self.description,
            "command": self.command,
            **({"given": list(self.given)} if self.given else {}),
            "file": self.file,
            "axes": list(self.axes),
            "seeds": list(self.seeds),
            "tables": [table.model_dump(mode="json") for table in self.tables],
            "evaluations": [
                {"name": request.name, "settings": request.settings.plain}
                | ({"components": request.components} if request.components else {})
                for request in self.evaluations
            ],
            **({"seed_rule": self.seed_rule.model_dump(mode="json")} if self.seed_rule else {}),
        }
