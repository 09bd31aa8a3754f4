"""The tasks that kdx trains models for: name → class.

Text is translated and predicted, as in the paper, and also classified. On generated examples a model predicts the
pixels of an image one by one, the class of a set, the class of streams of several modalities, the shortest tour, the
relation of a node of a graph to another, and the answers in a sequence.
"""

from typing import Any

from kdx.tasks.definition import Task
from kdx.words.family import Family

TASKS: Family[Any, Task] = Family(
    "task",
    Task,
    "kdx.training.module:TaskModule",
)
