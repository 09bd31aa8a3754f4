"""Mirrors of recorded numbers in other programs: TensorBoard, MLflow, trackio and W&B.

A mirror reads the results database and writes to the other program; nothing of kdx depends on it. One process follows
the runs of a command while it trains, and `kdx export --format` mirrors what is recorded (`follow`). Each program is
one file with one class.
"""
