"""What kdx can train models for: word → class.

Text is translated and predicted, as in the paper; beyond it, text is classified, and generated examples give the pixels
of an image one by one, the class of a set, the class of streams of several modalities, the shortest tour, what
a node of a graph is to another, and the answers in a sequence.
"""

from typing import Any

from kdx.tasks.definition import Task
from kdx.words.family import Family

TASKS: Family[Any, Task] = Family(
    "task",
    Task,
    "kdx.training.module:TaskModule",
)
