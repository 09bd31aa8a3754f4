#!/bin/bash
# One worker of a sweep: it takes runs from the database until none is left, leaves before the job's time limit, and the
# job is queued again.
#
# This text is the same for every job. Its arguments are the worker's command line, and kdx sets in the environment:
#   KDX_JOB_SETUP     shell commands of the user (--slurm-setup)
#   KDX_JOB_PYTHON    shell command of the user that runs Python (--slurm-python)
#   KDX_JOB_SOURCE    folder of the package that the worker uses
#   KDX_JOB_REQUEUES  how often the job is queued again
#   KDX_JOB_AGAIN     the command that submits new jobs, for a message
# Only the first two are evaluated. The others contain names from a grid or a database.
set -u
words=("$@")
set -- # a setup that sources a file would hand it these arguments
limit_is_near=
worker=
told=
# Once, since a second one ends the worker at once; and not before there is a worker.
leave() { limit_is_near=yes; if [ -n "$worker" ] && [ -z "$told" ]; then told=yes; kill -TERM "$worker" 2>/dev/null; fi; }
# The signal is not SIGTERM, which Slurm sends when a job is cancelled or preempted: such a job is not queued again by its
# own doing. Slurm sends SIGTERM to every process of the job, so the script does not pass it on; the second one would end
# the worker at once.
trap leave USR2
trap : TERM INT
eval "$KDX_JOB_SETUP"
export PYTHONPATH=$KDX_JOB_SOURCE
eval "$KDX_JOB_PYTHON "'-P -m kdx "${words[@]}" &'
worker=$!
[ -n "$limit_is_near" ] && leave
while :; do
  wait "$worker"
  code=$?
  kill -0 "$worker" 2>/dev/null || break
done
# If the worker ended just after a signal had ended the wait, the code was that of the signal.
wait "$worker" 2>/dev/null
ended=$?
[ "$ended" -ne 127 ] && code=$ended
# 143: the worker was asked to end and left checkpoints.
if [ -n "$limit_is_near" ] && [ "$code" -eq 143 ]; then
  if [ "${SLURM_RESTART_COUNT:-0}" -lt "$KDX_JOB_REQUEUES" ]; then
    echo "kdx: the time of this job is over; it is queued again"
    scontrol requeue "$SLURM_JOB_ID" && exit 0
  else
    printf 'kdx: this job was queued again %s times, which is the limit; %s submits new ones\n' \
      "$KDX_JOB_REQUEUES" "$KDX_JOB_AGAIN" >&2
  fi
fi
exit "$code"
