"""Runs and their files as they may be, for rules to judge."""

from hypothesis import strategies as st

from kdx.run_files.files import RunFile, folder_of
from kdx.store.records import Inventory, RunRecord, RunState

SHA = "ab" * 32
NAMES = (
    f"step-000000120.{SHA}.ckpt",
    f"weights-000000100.{SHA}.ckpt",
    f"best-000000100.{SHA}.ckpt",
    f"average-000000120.{SHA}.ckpt",
    f"step-000000110.{SHA}.corrupt",
    ".kdx-0123456789abcdef",
    "log.txt",
    "weights-removed.txt",
    "notes.txt",
)


def run(number: int, state: RunState = RunState.COMPLETED, **facts: object) -> RunRecord:
    """A run of the cell 000…0."""
    usual = {"id": number, "cell_id": "0" * 32, "seed": number, "state": state, "attempt": 1, "owner": "me"}
    return RunRecord(**usual | {"valid_score": 1.0, "valid_step": 1, "test_score": 1.0} | facts)


def files(run: RunRecord, names: tuple[str, ...] = NAMES) -> list[RunFile]:
    return [RunFile(folder_of(run), name, 100) for name in names]


def inventory(*runs: RunRecord, planned: bool = True) -> Inventory:
    return Inventory(runs, frozenset(run.key for run in runs) if planned else frozenset())


@st.composite
def listings(draw: st.DrawFn) -> tuple[Inventory, frozenset[int], list[RunFile]]:
    """Runs in any state, which of them are selected, and files of theirs and of others."""
    runs = [
        run(
            number,
            draw(st.sampled_from(list(RunState))),
            generation=draw(st.integers(0, 2)),
            owner=draw(st.sampled_from(["alive", "gone"])),
            lease_left=draw(st.sampled_from([None, -5.0, 5.0])),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    planned = frozenset(each.key for each in runs if draw(st.booleans()))
    selected = frozenset(each.id for each in runs if draw(st.booleans()))
    strangers = [run(number, cell_id="f" * 32) for number in range(draw(st.integers(0, 2)))]
    names = st.lists(st.sampled_from(NAMES) | st.text("step-0.ckpt", min_size=1, max_size=20), unique=True)
    listed = [file for each in [*runs, *strangers] for file in files(each, tuple(draw(names)))]
    return Inventory(tuple(runs), planned), selected, listed
