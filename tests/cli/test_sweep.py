"""`kdx sweep` and its end, whatever ends it: real processes, a real database."""

import os
import re
import signal
from pathlib import Path

import pytest
from grids import FAILING, LONG, PLANTED, TINY
from looked_after import typed
from terminal import LiveTerminal, stop_for_good
from waiting import has_begun, wait_until

from kdx.attention.kernels import KERNELS
from kdx.store.records import RunState

DATABASE = "my runs.db"
RESUME = "kdx resume 'long one' --db 'my runs.db'"


def last_line(messages: str) -> str:
    return messages.strip().splitlines()[-1]


@pytest.mark.slow
def test_a_sweep_runs_what_is_not_there_yet_and_a_failing_cell_hurts_nobody(terminal, figure):
    terminal.write("tiny.yaml", TINY % {"steps": 60, "seeds": 1})
    done = terminal.type("kdx sweep tiny.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    first, second, third, fourth = done.stderr.splitlines()
    assert first == "tiny: 1 run"
    assert re.fullmatch(r"started [0-9a-f]{8} translation · seed 0", second)
    assert re.fullmatch(r"completed [0-9a-f]{8} translation · seed 0: loss \d+\.\d+ valid, .* test \(\d+ s\)", third)
    assert fourth == "1 run: 1 completed; next: kdx report tiny"

    again = terminal.type("kdx sweep tiny.yaml")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.splitlines() == ["tiny: 1 run, 1 already ended", fourth]

    # Another sweep, which has the cell too: its new seed and the new cell run, and nothing else.
    terminal.write("failing.yaml", FAILING)
    mixed = terminal.type("kdx sweep failing.yaml --set seeds=2 --workers 2")
    assert (mixed.returncode, mixed.stdout) == (4, "")
    lines = mixed.stderr.splitlines()
    assert lines[0] == "failing: 4 runs, 1 already ended"
    started = [line.partition(" ")[2][9:] for line in lines if line.startswith("started")]
    assert sorted(started) == ["fails · seed 0", "fails · seed 1", "learns · seed 1"]
    assert sum("allocate memory" in line for line in lines if line.startswith("failed")) == 2
    assert re.fullmatch(
        r"4 runs: 2 failed, 2 completed; see why with: kdx logs \d; "
        r"try them again with: kdx retry failing state=failed",
        lines[-1],
    )

    planned = terminal.type("kdx plan failing.yaml --set seeds=2 --all")
    assert planned.returncode == 0
    actions = [re.sub(r"  [0-9a-f]{8} ", "  ", line) for line in planned.stdout.splitlines()]
    assert re.fullmatch(r"skip      learns · seed 0  \(completed, validation score \d\.\d+\)", actions[0])
    assert actions[1].startswith("skip      fails · seed 0  (failed: out of memory: RuntimeError: ")
    assert planned.stderr.startswith(
        "4 runs of 2 cells × 2 seeds: 4 to skip; next: kdx sweep failing.yaml --set seeds=2"
    )
    assert terminal.type("kdx resume tiny").stderr == "nothing is unfinished; next: kdx report tiny\n"
    figure(f"no memory for one cell: exit {mixed.returncode}, {lines[-1].partition(';')[0]}")


@pytest.mark.long
def test_a_stopped_sweep_goes_on_with_the_command_that_it_ends_with(terminal):
    terminal.write("grid.yaml", LONG.replace("steps: 800", "steps: 3000"))

    # Ctrl-C on a terminal, where a display shows how it goes.
    terminal.environment |= {"NO_COLOR": "1", "COLUMNS": "200"}
    live = LiveTerminal(terminal, "sweep", "grid.yaml", "--db", DATABASE, "--workers", "2")
    wait_until(lambda: terminal.is_at_work(database=DATABASE))
    live.press_control_c()
    code, seen = live.end()
    seen = re.sub("\x1b\\[[?0-9;]*[A-Za-z]", "", seen)
    assert code == 130, seen
    assert "importing …" in seen and "preparing data" in seen
    assert "━" in seen and "0/2" in seen and re.search(r"2 running", seen) and re.search(r"loss \d\.\d{3}", seen)
    assert last_line(seen) == f"2 runs: 2 interrupted; resume with: {RESUME}"
    reached = min(run.progress_step for run in terminal.runs(DATABASE))
    assert not terminal.workers()

    # Killed without a word: nothing is left behind, and nobody waits for a lease to lapse.
    going_on = terminal.start("resume", "--db", DATABASE)
    wait_until(lambda: terminal.is_at_work(reached, DATABASE))
    going_on.kill()
    going_on.wait()
    wait_until(lambda: not terminal.workers())
    assert {run.state for run in terminal.runs(DATABASE)} == {RunState.INTERRUPTED}, "the workers had time to stop"

    done = terminal.type(last_line(seen).partition("resume with: ")[2])
    assert done.returncode == 0, done.stderr
    assert (done.stdout, last_line(done.stderr)) == (
        "",
        f"2 runs: 2 completed; next: {RESUME.replace('resume', 'report')}",
    )
    assert [(run.state, run.attempt) for run in terminal.runs(DATABASE)] == [(RunState.COMPLETED, 3)] * 2


@pytest.mark.slow
def test_a_sweep_that_is_told_twice_ends_at_once(terminal, figure):
    # Far more steps than it comes to, however fast the machine is.
    terminal.write("grid.yaml", LONG.replace("steps: 800", "steps: 100000"))
    sweep = terminal.start("sweep", "grid.yaml", "--db", DATABASE, "--workers", "2")
    wait_until(lambda: terminal.is_at_work(database=DATABASE))
    sweep.send_signal(signal.SIGTERM)
    once = sweep.wait(300)
    assert once == 143
    assert sweep.stdout.read() == b""
    assert "stopping at the next safe point; once more ends at once\n" in terminal.messages()
    assert last_line(terminal.messages()) == f"2 runs: 2 interrupted; resume with: {RESUME}"

    reached = max(run.progress_step for run in terminal.runs(DATABASE))
    sweep = terminal.start("sweep", "grid.yaml", "--db", DATABASE, "--workers", "2")
    wait_until(lambda: terminal.is_at_work(reached, DATABASE))
    (server,) = [pid for pid in terminal.workers() if os.getsid(pid) == pid]
    stop_for_good([pid for pid in terminal.workers() if pid != server])
    sweep.send_signal(signal.SIGINT)
    wait_until(lambda: "once more ends at once" in terminal.messages())
    assert sweep.poll() is None, "it waits for the next safe point, which no worker comes to"
    sweep.send_signal(signal.SIGINT)
    assert sweep.wait(300) == 130
    wait_until(lambda: not terminal.workers())
    assert last_line(terminal.messages()).endswith(f"resume with: {RESUME}")
    figure(f"SIGTERM once: exit {once}; SIGINT twice: exit {sweep.returncode}, {len(terminal.workers())} workers left")


CANARY = r"canary \w{8} → \w{8}"
# Without its vector instructions a processor gives other bits, and the library of products with other instructions.
ELSEWHERE = {
    "ATEN_CPU_CAPABILITY=default": rf"cpu_capability \w+ → DEFAULT, {CANARY}",
    "MKL_CBWR=COMPATIBLE": CANARY,
}


# Which settings change the canary, tests/training/test_canary.py has; one of them is enough for what follows from it.
@pytest.mark.slow
@pytest.mark.parametrize(
    "elsewhere", ["ATEN_CPU_CAPABILITY=default", pytest.param("MKL_CBWR=COMPATIBLE", marks=pytest.mark.long)]
)
def test_on_another_processor_a_run_goes_on_only_when_told_to_and_the_report_says_so(elsewhere, terminal, figure):
    differs = ELSEWHERE[elsewhere]
    terminal.write("grid.yaml", LONG)
    sweep = terminal.start("sweep", "grid.yaml", "--set", "seeds=1")
    wait_until(lambda: has_begun(terminal.folder / "runs.files"))
    sweep.send_signal(signal.SIGTERM)
    assert sweep.wait(300) == 143

    refused = terminal.type(f"{elsewhere} kdx resume")
    assert refused.returncode == 5
    changed = re.search(rf"the run came to step \d+ under other conditions: {differs}\n", refused.stderr)
    assert changed
    assert "--if-changed continue resumes it, marked as not bit-exact" in refused.stderr
    (run,) = terminal.runs()
    assert run.state is RunState.INTERRUPTED and 0 < run.progress_step < 800
    done = terminal.type(f"{elsewhere} kdx resume --if-changed continue")
    assert done.returncode == 0, done.stderr
    text = " ".join(terminal.type("kdx report").stdout.split())
    assert re.search(rf"conditions while training: {differs} from step \d+ on \(not bit-exact\)", text)
    figure(
        f"{changed[0].strip()}: exit {refused.returncode}; when told to go on: exit {done.returncode}, in the report"
    )


def test_a_grid_with_three_faults_tells_them_all_and_leaves_nothing_behind(terminal):
    terminal.write("grid.yaml", PLANTED)
    done = terminal.type("kdx sweep grid.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"grid.yaml:4:9: unknown kernel `rfb`\n  hint: did you mean `rbf`?\n  allowed: {', '.join(KERNELS)}\n"
        "grid.yaml:5:16: width 65 does not divide by 4 heads\n  hint: take 64 or 68\n"
        "grid.yaml:6:19: `no` as training.steps\n  allowed: a whole number from 1 on\n"
    )
    assert terminal.files() == {"grid.yaml"} and not terminal.workers()


def test_what_is_to_be_said_of_the_text_comes_first(data_home, ran):
    short = TINY.replace("train_lines: 300", "train_lines: 300, max_tokens: 8")
    Path("grid.yaml").write_text(short % {"steps": 10, "seeds": 1})
    text = typed("sweep", "grid.yaml").stderr
    assert re.match(r"note: synthetic-translation: \d+ of 300 training pairs are left out; ", text)


def test_a_corpus_that_is_not_prepared_starts_nothing(terminal):
    done = terminal.type("kdx sweep multi30k-smoke")
    assert done.returncode == 2
    assert "hint: kdx data prepare multi30k\n" in done.stderr
    assert not terminal.workers()
    assert terminal.files() == set()


def test_a_database_that_cannot_be_used_is_another_exit_code(terminal):
    terminal.write("notes.txt", "not a database, and long enough to be one" * 100)
    done = terminal.type("kdx sweep quickstart --db notes.txt")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: notes.txt: this file is not a database\n")
    assert terminal.files() == {"notes.txt"}
