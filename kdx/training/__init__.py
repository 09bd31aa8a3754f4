"""One run: from a resolved cell and a seed to metrics.

The loop is Lightning's; what makes a run resumable is ours. Everything random is a function of (seed, step), so nothing
random is stored; the run is one long epoch whose position is a single integer, so no loader state is stored either;
checkpoints are taken at the start of a batch, when a step has just been completed, and only after the metrics before
them are in the database. Lightning's own logging is not used: its counters and running means are not restored bit for
bit, and the recorder needs neither.
"""

from kdx.training.late_scipy_signal import put_off

put_off()
