"""Decides what databases have together: which row of each kind stands, and where they contradict each other.

Each row is known by what it says and not by its number, see `HOW`. Nothing is written here.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdx.store.merge_sides import OF_EVALUATIONS, OF_RUNS, PlanKey, Row, RunKey, Side, SweepState
from kdx.store.records import CODE, FINAL, RunState
from kdx.store.schema import value_of

HOW: Mapping[str, str] = {
    "identity": "the target keeps its own",
    "sweep": "by name; with the same plan they are one, also if their seeds differ, which are joined",
    "cell": "by its id, which is a hash of it",
    "sweep_cell": "goes with the sweep",
    "sweep_run": "goes with the sweep; planned in either is planned",
    "environment": "by its id, which is a hash of it",
    "run": "by cell, seed and generation: a finished one before any other, of others the one that came further",
    "attempt": "goes with the run that stands",
    "metric": "goes with the run that stands",
    "output": "goes with the run that stands",
    "test_document": "goes with the run that stands",
    "evaluation": "by run and settings; one that failed gives way to one that did not",
    "evaluation_metric": "goes with the evaluation",
    "evaluation_document": "goes with the evaluation",
    "part": "by the hash of its sources",
    "plan": "by sweep, time and content; the one that the sweep follows is the last",
    "plan_cell": "goes with the plan",
    "invalidation": "by run, time and reason; withdrawn in either is withdrawn",
    "search": "by its id, which is a hash of it",
    "sweep_search": "goes with the sweep",
    "trial": "all of a search: by number, where both have drawn the same ones",
    "note": "by what it is on, time and text",
    "tag": "by what it is on, and the word",
}
"""Table → how its rows are joined; who adds a table says it here, and does it below."""

NOT_COMPARED = frozenset({"command", "file", "seeds"})
"""Parts of a sweep's grid in which the same plan may differ."""

_ORDER = (RunState.PENDING, RunState.CANCELLED, RunState.INTERRUPTED, RunState.FAILED)


class Place(NamedTuple):
    """Where the content of a run or an evaluation comes from."""

    side: int
    """0 is the target, then the sources."""
    row: Row
    fresh: bool = False
    """Whether the run is only planned here, since it is running there."""


@dataclass(frozen=True)
class Conflict:
    """What two databases say otherwise; the first one stands."""

    kind: str
    """`run`, `sweep`, `search` or `evaluation`."""
    what: str
    """Its name, such as `cell 0123abcd, seed 0, generation 0`."""
    differences: tuple[str, ...]
    here: Mapping[str, Any]
    """Of what stands: the database and the run there, scores, attempts, code and the like."""
    there: Mapping[str, Any]


@dataclass
class Union:
    """What all databases have together, and what was decided on the way."""

    by_id: dict[str, dict[bytes, Row]] = field(default_factory=dict)
    trials: dict[bytes, dict[int, Row]] = field(default_factory=dict)
    sweeps: dict[bytes, SweepState] = field(default_factory=dict)
    runs: dict[RunKey, Place] = field(default_factory=dict)
    evaluations: dict[tuple[RunKey, bytes], Place] = field(default_factory=dict)
    notes: set[tuple[Any, ...]] = field(default_factory=set)
    tags: dict[tuple[Any, bytes], float] = field(default_factory=dict)
    invalidations: dict[tuple[RunKey, float, bytes], float | None] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Lines on what is not taken, though nothing contradicts it."""
    placed: dict[tuple[int, int], RunKey] = field(default_factory=dict)
    """(side, run there) → the same run here."""
    added: dict[RunKey, str] = field(default_factory=dict)
    """Runs that came as a further generation → why tables leave them out."""

    def came(self, side: int, run_id: int) -> bool:
        """Whether what stands of a run is what this side has of it."""
        stands = self.runs[self.placed[side, run_id]]
        return (stands.side, stands.row["id"]) == (side, run_id)


def unite(sides: Sequence[Side], *, as_generation: bool = False, rename: bool = False) -> Union:
    """What these databases have together. Where two contradict each other, the first one stands.

    Args:
        sides: the target first.
    """
    union = Union()
    for name in ("cell", "environment", "part", "search"):
        union.by_id[name] = _by_id(sides, name)
    _runs(union, sides, as_generation)
    _evaluations(union, sides)
    _trials(union, sides)
    names = _sweeps(union, sides, rename)
    _remarks(union, sides, names)
    return union


def _by_id(sides: Sequence[Side], table: str) -> dict[bytes, Row]:
    """What is known by a hash of it. Its other columns, such as a time, are those of the target or the smallest."""
    key = "sha256" if table == "part" else "id"
    here = {row[key]: row for row in sides[0].rows[table]}
    found: dict[bytes, Row] = {}
    for side in sides[1:]:
        for row in side.rows[table]:
            found[row[key]] = min(found.get(row[key], row), row, key=repr)
    return {**found, **here}


def _runs(union: Union, sides: Sequence[Side], as_generation: bool) -> None:
    results = _results(sides)
    highest: dict[tuple[bytes, int], int] = defaultdict(int)
    for side in sides:
        for row in side.runs:
            of = row["cell_id"], row["seed"]
            highest[of] = max(highest[of], row["generation"])
    of_seed: dict[tuple[bytes, int], list[RunKey]] = defaultdict(list)

    def place(key: RunKey, place: Place) -> None:
        if key not in union.runs:
            of_seed[key[:2]].append(key)
        union.runs[key] = place

    def differ(one: Place, other: Place) -> tuple[str, ...]:
        its = [results[each.side].get(each.row["id"], {}) for each in (one, other)]
        return _differences(one.row, other.row, *its)

    for number, side in enumerate(sides):
        running = 0
        for row in side.runs:
            key = side.key_of[row["id"]]
            there = union.runs.get(key)
            mine = Place(number, row)
            if number and _state(row) is RunState.RUNNING:
                running += 1
                mine = Place(number, _fresh(row), fresh=True)
            union.placed[number, row["id"]] = key
            if there is None:
                place(key, mine)
            elif _state(there.row) is RunState.RUNNING:
                if _is_final(mine.row):
                    text = f"run {there.row['id']} is running here, and {_state(row)} in {side.name}"
                    union.left.append(f"{text}; merge again once it is over")
            elif _is_final(there.row) and _is_final(mine.row):
                if not (differences := differ(there, mine)):
                    if there.side and _done(sides, mine) < _done(sides, there):
                        place(key, mine)
                    continue
                finals = [one for one in of_seed[key[:2]] if one != key and _is_final(union.runs[one].row)]
                same = next((one for one in finals if not differ(union.runs[one], mine)), None)
                if same is not None:
                    union.placed[number, row["id"]] = same
                elif as_generation:
                    highest[key[:2]] += 1
                    further = key._replace(generation=highest[key[:2]])
                    place(further, Place(number, {**row, "generation": further.generation}))
                    union.placed[number, row["id"]] = further
                    where = f"generation {key.generation} of {side.name}"
                    union.added[further] = f"{where}, where it has other results: {'; '.join(differences)}"
                else:
                    del union.placed[number, row["id"]]
                    sided = _described(sides, there), _described(sides, mine)
                    union.conflicts.append(Conflict("run", _run_name(key), differences, *sided))
            elif _comes_before(sides, mine, there):
                place(key, mine)
        if running:
            runs = f"{running} runs are" if running > 1 else "1 run is"
            union.left.append(f"{runs} running in {side.name}, and only planned here; merge again once that is over")


def _results(sides: Sequence[Side]) -> list[dict[int, dict[str, int]]]:
    """Of each side run → table → hash of its results there, for runs that several sides have finished."""
    finished: dict[tuple[bytes, int], set[int]] = defaultdict(set)
    for number, side in enumerate(sides):
        for row in side.runs:
            if _is_final(row):
                finished[row["cell_id"], row["seed"]].add(number)
    shared = {of for of, numbers in finished.items() if len(numbers) > 1}
    found = []
    for side in sides:
        ids = [row["id"] for row in side.runs if (row["cell_id"], row["seed"]) in shared and _is_final(row)]
        digests = side.digests(OF_RUNS, "run_id", ids)
        found.append({run_id: digests[run_id] for run_id in ids})
    return found


_COMPARED = {
    "state": "other state",
    "data_fingerprint": "other data",
    "code_fingerprint": "other code",
    "valid_bits": "other valid_score",
    "valid_step": "other valid_step",
    "test_bits": "other test_score",
}
_TABLES = {"metric": "other metrics", "output": "other texts", "test_document": "other sums of documents"}


def _differences(one: Row, other: Row, its: Mapping[str, int], others: Mapping[str, int]) -> tuple[str, ...]:
    """In which results two finished runs differ; when and where they were computed does not count."""
    found = [words for column, words in _COMPARED.items() if one[column] != other[column]]
    found += [words for table, words in _TABLES.items() if its.get(table) != others.get(table)]
    weights = {one["weights_sha256"], other["weights_sha256"]} - {None}
    return (*found, *(["other weights"] if len(weights) > 1 else []))


def _state(row: Row) -> RunState:
    return RunState(row["state"].decode())


def _is_final(row: Row) -> bool:
    return _state(row) in FINAL


def _fresh(row: Row) -> Row:
    """A run that nobody has claimed."""
    kept = {name: row[name] for name in ("id", "cell_id", "seed", "generation")}
    begun = {"state": b"pending", "attempt": 0, "progress_step": 0, "stalls": 0}
    return {**dict.fromkeys(row), **kept, **begun}


def _comes_before(sides: Sequence[Side], place: Place, there: Place) -> bool:
    """Whether of two runs that are not both finished the first one stands, as the one that came further."""
    if (rank := _rank(place)) != (other := _rank(there)) or not there.side:
        return rank > other
    # Any order will do, if it does not depend on that of the sources.
    return _content(sides, place) > _content(sides, there)


def _rank(place: Place) -> tuple[Any, ...]:
    state = _state(place.row)
    order = _ORDER.index(state) if state in _ORDER else len(_ORDER)
    return state in FINAL, place.row["progress_step"], place.row["attempt"], order


def _content(sides: Sequence[Side], place: Place) -> str:
    attempts = [] if place.fresh else sides[place.side].attempts[place.row["id"]]
    return repr([_without_ids(one) for one in (place.row, *attempts)])


def _done(sides: Sequence[Side], place: Place) -> tuple[float, str]:
    """When a finished run was done; of two with the same results, the one that was done first stands."""
    attempts = sides[place.side].attempts[place.row["id"]]
    ended = max((one["ended"] or 0.0 for one in attempts), default=0.0)
    return ended, _content(sides, place)


def _without_ids(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("id", "run_id")}


def _run_name(key: RunKey) -> str:
    return f"cell {key.cell_id.decode()}, seed {key.seed}, generation {key.generation}"


def _described(sides: Sequence[Side], place: Place) -> dict[str, Any]:
    side, row = sides[place.side], place.row
    attempts = side.attempts[row["id"]]
    facts = side.environment(row)
    facts.pop(CODE, None)
    return {
        "database": side.name,
        "run": row["id"],
        "state": str(_state(row)),
        "valid_score": None if row["valid_bits"] is None else value_of(row["valid_bits"]),
        "test_score": None if row["test_bits"] is None else value_of(row["test_bits"]),
        "attempts": row["attempt"],
        "ended": max((one["ended"] for one in attempts if one["ended"] is not None), default=None),
        "owner": _text(row["owner"]),
        "code": _text(row["code_fingerprint"]),
        "data": _text(row["data_fingerprint"]),
        "environment": facts,
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _evaluations(union: Union, sides: Sequence[Side]) -> None:
    """Of runs that stand, or have the results of the one that stands."""
    found: dict[tuple[RunKey, bytes], list[Place]] = defaultdict(list)
    for number, side in enumerate(sides):
        for row in side.rows["evaluation"]:
            key = union.placed.get((number, row["run_id"]))
            if key is not None and (union.came(number, row["run_id"]) or _is_final(union.runs[key].row)):
                found[key, row["settings_id"]].append(Place(number, row))
    several = {number: set[int]() for number in range(len(sides))}
    for places in found.values():
        for one in places if len(places) > 1 else ():
            several[one.side].add(one.row["id"])
    results = [side.digests(OF_EVALUATIONS, "evaluation_id", several[number]) for number, side in enumerate(sides)]
    for evaluation_key, places in found.items():
        stands = places[0]
        for one in places[1:]:
            if (stands.row["error"] is None) != (one.row["error"] is None):
                stands = one if one.row["error"] is None else stands
            elif stands.row["error"] is None:
                its = [results[each.side].get(each.row["id"], {}) for each in (stands, one)]
                columns = {name: words for name, words in _COMPARED.items() if name.endswith("fingerprint")}
                differences = [text for name, text in columns.items() if stands.row[name] != one.row[name]]
                differences += ["other numbers"] if its[0] != its[1] else []
                if differences:
                    settings = json.loads(stands.row["settings"])
                    what = f"evaluation {json.dumps(settings)} of {_run_name(evaluation_key[0])}"
                    here, there = ({"database": sides[each.side].name} for each in (stands, one))
                    union.conflicts.append(Conflict("evaluation", what, tuple(differences), here, there))
                elif stands.side and repr(_without_ids(one.row)) < repr(_without_ids(stands.row)):
                    stands = one
            elif stands.side and repr(_without_ids(one.row)) < repr(_without_ids(stands.row)):
                stands = one
        union.evaluations[evaluation_key] = stands


def _trials(union: Union, sides: Sequence[Side]) -> None:
    first_of: dict[bytes, str] = {}
    for side in sides:
        of_search: dict[bytes, dict[int, Row]] = defaultdict(dict)
        for row in side.rows["trial"]:
            of_search[row["search_id"]][row["number"]] = row
        for search_id, its in of_search.items():
            there = union.trials.setdefault(search_id, {})
            # Each trial is drawn after all before it, so that two series are one or contradict each other.
            other = [number for number in its.keys() & there.keys() if not _same_trial(its[number], there[number])]
            if other:
                first, name = min(other), search_id.decode()
                here, mine = _trial(there[first], first_of[search_id]), _trial(its[first], side.name)
                union.conflicts.append(Conflict("search", f"search {name}", (f"other trial {first}",), here, mine))
                continue
            first_of.setdefault(search_id, side.name)
            for number, row in its.items():
                if number not in there or (there[number]["state"] is None and row["state"] is not None):
                    there[number] = row


def _same_trial(one: Row, other: Row) -> bool:
    drawn = all(one[name] == other[name] for name in ("parameters", "attributes", "cell_id"))
    ended = None in (one["state"], other["state"]) or all(one[name] == other[name] for name in ("state", "bits"))
    return drawn and ended


def _trial(row: Row, database: str) -> dict[str, Any]:
    value = None if row["bits"] is None else value_of(row["bits"])
    return {
        "database": database,
        "parameters": json.loads(row["parameters"]),
        "state": _text(row["state"]),
        "value": value,
    }


def _sweeps(union: Union, sides: Sequence[Side], rename: bool) -> dict[tuple[int, bytes], bytes]:
    """(side, name there) → name here, of the sweeps that are in the union."""
    states: dict[bytes, list[SweepState]] = defaultdict(list)
    first: dict[bytes, str] = {}
    names: dict[tuple[int, bytes], bytes] = {}
    for number, side in enumerate(sides):
        for name, state in side.sweeps.items():
            own = name
            if states[own] and (differences := _other_plan(states[own][0], state)):
                if rename:
                    own = b"%s-of-%s" % (name, side.id[:8].encode())
                    state = SweepState({**state.row, "name": own}, *_rest(state))
                    differences = _other_plan(states[own][0], state) if states[own] else ()
                if differences:
                    what = f"sweep {name.decode(errors='replace')}"
                    here, there = ({"database": each} for each in (first[own], side.name))
                    union.conflicts.append(Conflict("sweep", what, differences, here, there))
                    continue
            states[own].append(state)
            first.setdefault(own, side.name)
            names[number, name] = own
    union.sweeps = {name: _joined(its) for name, its in states.items() if its}
    return names


def _rest(state: SweepState) -> tuple[Any, ...]:
    return state.plans, state.choices, state.runs, state.searches


def _other_plan(one: SweepState, other: SweepState) -> tuple[str, ...]:
    """In what two sweeps of one name differ; their seeds may."""
    grids = [json.loads(state.row["grid"]) for state in (one, other)]
    parts = sorted({*grids[0], *grids[1]} - NOT_COMPARED)
    found = [f"other {part}" for part in parts if grids[0].get(part) != grids[1].get(part)]
    choices = [
        {(*key, labels) for key, (labels, is_planned) in each.choices.items() if is_planned} for each in (one, other)
    ]
    if choices[0] != choices[1]:
        counts = [len(each) for each in choices]
        found.append(f"{counts[0]} cells and {counts[1]}, {len(choices[0] & choices[1])} of them the same")
    return (*found, *(["other searches"] if one.searches != other.searches else []))


def _seeds(grid: bytes) -> tuple[int, ...]:
    return tuple(json.loads(grid).get("seeds", ()))


def _with_seeds(grid: bytes, seeds: tuple[int, ...]) -> bytes:
    found = json.loads(grid)
    if set(found.get("seeds", ())) == set(seeds):
        return grid
    return json.dumps({**found, "seeds": list(seeds)}).encode()


def _joined(states: Sequence[SweepState]) -> SweepState:
    """Sweeps with the same plan as one, which has the seeds of all."""
    if len(states) == 1:
        return states[0]
    first = states[0]
    seeds = tuple(sorted({seed for state in states for seed in _seeds(state.row["grid"])}))
    later = max(states, key=lambda state: (state.row["updated"], state.row["grid"]))
    row = {
        **first.row,
        "created": min(state.row["created"] for state in states),
        "updated": later.row["updated"],
        "grid": _with_seeds(later.row["grid"], seeds),
    }
    choices: dict[tuple[bytes, int], tuple[bytes, bool]] = {}
    for state in states:
        for key, choice in state.choices.items():
            # A choice that is planned comes before one that a sweep has left.
            choices[key] = max(choices.get(key, choice), choice, key=lambda one: (one[1], one[0]))
    runs: dict[tuple[bytes, int], bool] = {}
    for state in states:
        for seeded, planned in state.runs.items():
            runs[seeded] = runs.get(seeded, False) or planned
    return SweepState(row, _history(states, seeds), choices, runs, first.searches)


def _history(states: Sequence[SweepState], seeds: tuple[int, ...]) -> list[PlanKey]:
    newest = [state.plans[-1] for state in states if state.plans]
    if not newest:
        return []
    whole = [plan for plan in newest if set(_seeds(plan.grid)) == set(seeds)]
    followed = max(whole) if whole else max(newest)
    followed = followed._replace(grid=_with_seeds(followed.grid, seeds))
    every = {plan for state in states for plan in state.plans} | {followed}
    if every == set(states[0].plans) and states[0].plans[-1] == followed:
        return states[0].plans
    return [*sorted(every - {followed}), followed]


def _remarks(union: Union, sides: Sequence[Side], names: Mapping[tuple[int, bytes], bytes]) -> None:
    """Notes, tags and reasons to leave a run out of tables; those on what is not taken are not taken either."""
    of_target: set[tuple[Any, bytes]] = set()
    for number, side in enumerate(sides):
        for row in side.rows["note"]:
            if (of := _on(row, union, number, side, names)) is not None:
                union.notes.add((of, row["made"], row["text"]))
        for row in side.rows["tag"]:
            key = _on(row, union, number, side, names), row["word"]
            if key[0] is not None and key not in of_target:
                union.tags[key] = min(union.tags.get(key, row["made"]), row["made"])
        if not number:
            of_target = {*union.tags}
        for row in side.rows["invalidation"]:
            if (of_run := union.placed.get((number, row["run_id"]))) is not None:
                reason = of_run, row["made"], row["why"]
                times = [union.invalidations.get(reason), row["withdrawn"]]
                union.invalidations[reason] = min((time for time in times if time is not None), default=None)


def _on(
    row: Row, union: Union, number: int, side: Side, names: Mapping[tuple[int, bytes], bytes]
) -> RunKey | bytes | None:
    """What somebody wrote on: a run or a sweep; None if that is not taken."""
    if row["run_id"] is not None:
        return union.placed.get((number, row["run_id"]))
    return names.get((number, side.sweep_names.get(row["sweep_id"], b"")))
