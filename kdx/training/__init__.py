"""One run: from a resolved cell and a seed to metrics.

Lightning runs the loop; kdx makes it resumable. Everything random is a function of (seed, step), so no random state is
stored. The run is one long epoch and its position a single integer, so no loader state is stored either. A checkpoint
is taken at the start of a batch, right after a completed step (of a pruned run after its validation), and only once the
metrics before it are in the database.
Lightning's own logging is not used: its counters and running means are not restored bit for bit, and the recorder needs
neither.
"""

from kdx.training.late_scipy_signal import put_off

put_off()
