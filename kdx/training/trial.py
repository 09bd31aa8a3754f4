"""Tries parts of one's own before a sweep starts, in a process of its own: `python -m kdx.training.trial`.

Reads {"parts": [...], "cells": [...], "within": seconds} from standard input, tries each cell's attentions and corpus
on a few tokens, and writes what went wrong as JSON: {} or {"problem", "place": [file, line, column] or null}.
"""

import json
import os
import signal
import sys
from collections.abc import Collection
from dataclasses import astuple
from types import FrameType
from typing import Any

import torch
from torch import nn

from kdx.attention import KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.verification.part import check_kernel
from kdx.data.corpora import DIFFICULTIES
from kdx.data.generated import ExampleCorpus, examples_of
from kdx.grid.spec import CellSpec
from kdx.models.transformer import attention_of, mixer_of
from kdx.own_parts.faults import fault_of
from kdx.own_parts.registry import at_hand, parts_of, take
from kdx.tasks import TASKS
from kdx.training.module import Batches, TaskModule
from kdx.vocabulary import Attention, Maps, Space, Split

ROWS, TOKENS = 2, 6


def main() -> None:
    """Tries what standard input asks for."""
    asked = json.load(sys.stdin)
    # What a part prints, or writes to the descriptor, is none of the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGALRM, _end)
    take(asked["parts"])
    fault: dict[str, Any] = {}
    for text in asked["cells"]:
        cell = json.loads(text)
        signal.alarm(asked["within"])
        try:
            _try(CellSpec.model_validate(cell))
        except BaseException as error:
            signal.alarm(0)  # which would end the process while it ends by itself
            found = fault_of(error, ", ".join(cell["parts"]), at_hand())
            fault = {"problem": found.problem, "place": found.place and astuple(found.place)}  # type: ignore[arg-type]
            break
        signal.alarm(0)
    with answer:
        print(json.dumps(fault), file=answer)


def _end(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("it does not come to an end on a few tokens")


def _try(spec: CellSpec) -> None:
    for part in parts_of(spec.parts):
        part.load()
    if spec.task in TASKS.outside:
        _rehearse(spec)
    elif spec.data.corpus in DIFFICULTIES.outside:
        corpus = DIFFICULTIES[spec.data.corpus](**spec.data.options)
        corpus.generate(spec.data.corpus, spec.data.seed, Split.TRAIN, ROWS)
    if spec.space not in (None, Space.SEQUENCE):
        return
    for which in TASKS.definition(spec.task).attentions:
        _attend(spec, which)


def _rehearse(spec: CellSpec) -> None:
    """A task from its batches to its metrics and back from its weights; one that reads text is only loaded.

    Raises:
        ValueError: a pass lacks a metric that the class names, or what one means.
    """
    known, task = TASKS.definition(spec.task), TASKS[spec.task]
    if known.data.text:
        return
    made = examples_of(spec.data, known)
    splits = {split: made.generate(spec.data.corpus, spec.data.seed, split, ROWS) for split in Split}
    corpus = ExampleCorpus(splits, made.tokens, made.classes, fingerprint="", unigram_loss=0.0, facts={})
    training = spec.training.model_copy(update={"batch_tokens": ROWS * made.tokens})
    spec = spec.model_copy(update={"training": training})
    batches: Batches = task.batches(spec, corpus, 0)
    module: TaskModule = task.of(spec, corpus)
    torch.autograd.backward(module.loss(batches.train.batch(0)))
    with torch.no_grad():
        module.on_validation_epoch_start()
        for index, batch in enumerate(batches.evaluation[Split.VALID]):
            module.validation_step(batch, index)
        module.on_validation_epoch_end()
        _check_metrics(module, Split.VALID, known.metrics)
        module.on_test_epoch_start()
        for index, batch in enumerate(batches.evaluation[Split.TEST]):
            module.test_step(batch, index)
        module.on_test_epoch_end()
        _check_metrics(module, Split.TEST, known.test_metrics)
    state = module.model.state_dict()
    task.model_of(spec, state).load_state_dict(state)


def _check_metrics(module: TaskModule, split: Split, named: Collection[str]) -> None:
    defined = module.definitions(split)
    for name in named:
        if name not in module.results:
            raise ValueError(f"its class names the metric `{name}`, which a {split} pass does not give")
        if name not in defined:
            raise ValueError(f"its `definitions` do not say what `{name}` means")


def _attend(spec: CellSpec, which: Attention) -> None:
    x = torch.randn(ROWS, TOKENS, spec.model.width, requires_grad=True)
    if which is Attention.ENCODER_DECODER:
        attention: nn.Module = attention_of(spec, which)
        output = attention(x, torch.randn(ROWS, TOKENS + 1, spec.model.width))
    else:
        attention = mixer_of(spec, which, attention_of)
        output = attention(x)
    if isinstance(attention, KernelAttention) and spec.kernel in KERNELS.outside:
        maps = spec.model.heads * (2 if spec.maps is Maps.DIFFERENTIAL else 1)
        check_kernel(attention.kernel, x.detach().view(ROWS, TOKENS, maps, -1).transpose(1, 2))
    if output.shape != x.shape:
        raise ValueError(f"the {which} attention gives {tuple(output.shape)} for tokens {tuple(x.shape)}")
    output.sum().backward()


if __name__ == "__main__":
    main()
