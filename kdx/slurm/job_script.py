"""The script of a job: one worker, which leaves before the time limit and is queued again."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kdx.slurm.asked import Asked

LEAVES = 143
"""Exit code of a worker that was asked to end and left checkpoints."""

# The signal is not SIGTERM, which Slurm sends when a job is cancelled or preempted: such a job is not queued again by
# its own doing. Slurm sends SIGTERM to every process of the job, so that the script does not pass it on; the second
# one would end the worker at once.
_SCRIPT = """\
#!/bin/bash
{flags}
# Made by kdx for sweep {sweep}. Each job is one worker: it takes runs from the database until none is left.
set -u
asked=
worker=
told=
# Once, since a second one ends the worker at once; and not before there is a worker.
leave() {{ asked=limit; if [ -n "$worker" ] && [ -z "$told" ]; then told=yes; kill -TERM "$worker" 2>/dev/null; fi; }}
trap leave USR2
trap 'asked=${{asked:-cancelled}}' TERM INT
{setup}
export PYTHONPATH={source}
{command} &
worker=$!
[ "$asked" = limit ] && leave
while :; do
  wait "$worker"
  code=$?
  kill -0 "$worker" 2>/dev/null || break
done
if [ "$asked" = limit ] && [ "$code" -eq {leaves} ]; then
  if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {requeues} ]; then
    echo "kdx: the time of this job is over; it is queued again"
    scontrol requeue "$SLURM_JOB_ID" && exit 0
  else
    echo "kdx: this job was queued again {requeues} times, which is the limit; {again} submits new ones" >&2
  fi
fi
exit "$code"
"""


def job_script(
    asked: Asked, *, sweep: str, folder: Path, source: Path, array: str, words: Sequence[str], again: str
) -> str:
    """Its text.

    Args:
        sweep: name of the sweep.
        folder: in which it works, by which its jobs are known, and in which logs are written.
        source: folder with the package that the workers use.
        array: places of the array, such as `0-7`.
        words: of the command line after `kdx`.
        again: the command that submits workers anew.
    """
    flags = [
        f"--job-name={_one_word(sweep)}",
        f"--array={array}",
        f"--chdir={folder}",
        f"--output={folder}/%A_%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR2@{asked.leave}",
        *asked.flags,
    ]
    python = asked.python or shlex.quote(sys.executable)
    return _SCRIPT.format(
        flags="\n".join(f"#SBATCH {_quoted(flag)}" for flag in flags),
        sweep=" ".join(sweep.split()),
        setup=asked.setup or ":",
        source=shlex.quote(str(source)),
        command=f"{python} -P -m kdx {shlex.join(words)}",
        leaves=LEAVES,
        requeues=asked.requeues,
        again=again.replace('"', "'"),
    )


def _one_word(sweep: str) -> str:
    return "kdx:" + "".join(letter if letter.isalnum() or letter in "-_./" else "-" for letter in sweep)[:60]


def _quoted(flag: str) -> str:
    """As the shell-like reader of `#SBATCH` lines takes it."""
    name, equals, value = flag.partition("=")
    return f"{name}{equals}{shlex.quote(value)}" if equals else name
