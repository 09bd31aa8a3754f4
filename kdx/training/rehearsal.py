"""Runs custom components in a child process: `python -m kdx.training.rehearsal`, see `kdx.components.apart`.

`kdx.sweep.rehearsal` sends {"cells": […]}: the corpus and attentions of each cell, and its task if it reads generated
examples, are tried on a few tokens, with the arithmetic of a run. `kdx verify --component` sends {"device": …}, and
gets the findings of one component.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from kdx.attention.interfaces import AbsoluteEncoding
from kdx.attention.verification.cases import findings_of
from kdx.attention.verification.interface import check_components, check_encoding, rehearse
from kdx.attention.verification.torch_state import set_otherwise_than_a_component_would, torch_left_alone
from kdx.components.apart import answer
from kdx.components.registry import at_hand, components_of
from kdx.data.generated import ExampleCorpus, examples_of
from kdx.errors import ComponentError
from kdx.grid.spec import CellSpec
from kdx.models.transformer import Input, attention_of, mixer_of
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.training.determinism import fix_arithmetic
from kdx.training.module import Batches, TaskModule
from kdx.vocabulary import Attention, Space, Split
from kdx.words.component import Component

ROWS, TOKENS = 3, 9  # no number of heads and no width of a head, so that a wrong shape is noticed

Step = Callable[[str], None]
"""Called with the names of components before each step of the work, see `kdx.components.apart.answer`."""


def work(request: Mapping[str, Any], step: Step) -> list[Any] | None:
    """Do what the parent process requested; return the findings of a component, or None for cells."""
    if "device" in request:
        (component,) = at_hand()
        return _findings(component, request["device"], step)
    specs = [CellSpec.model_validate(json.loads(cell)) for cell in request["cells"]]
    in_cells = {word for spec in specs for word in spec.components}
    for component in at_hand():
        if component.word not in in_cells:  # such as a metric of evaluations
            _load(component, step)
    for spec in specs:
        _try(spec, step)
    return None


def _load(component: Component, step: Step) -> type:
    step(component.word)
    with torch_left_alone("when it is imported"):
        return component.load()


def _findings(component: Component, device: str, step: Step) -> list[Any]:
    set_otherwise_than_a_component_would()
    kind = _load(component, step)
    findings = []
    for finding in findings_of(kind, device):
        findings.append(finding)
        step(component.word)
    return findings


def _try(spec: CellSpec, step: Step) -> None:
    fix_arithmetic(spec.training)
    classes = [_load(component, step) for component in components_of(spec.components)]
    step(", ".join(spec.components))
    with torch_left_alone("when it computes", may_draw=True):
        outside = spec.task in TASKS.outside or spec.data.corpus in DIFFICULTIES.outside
        if outside and not TASKS.definition(spec.task).data.text:
            _rehearse(spec)
        if spec.space in (None, Space.SEQUENCE):
            encoding = Input(spec, nn.Embedding(1, spec.model.width)).encoding
            if isinstance(encoding, AbsoluteEncoding) and type(encoding) in classes:
                check_encoding(encoding, spec.model.width)
        for which in TASKS.definition(spec.task).attentions:
            _attend(spec, which, classes)


def _rehearse(spec: CellSpec) -> None:
    """Try a task on a few generated examples: batches, loss, metrics, and the model rebuilt from its weights.

    A task that reads a text cannot be tried without the text; its first run tries it.

    Raises:
        ComponentError: a pass lacks a metric that the class names, or the meaning of one.
    """
    known, task = TASKS.definition(spec.task), TASKS[spec.task]
    spec, corpus = _few_examples(spec)
    batches: Batches = task.batches(spec, corpus, 0)
    module: TaskModule = task.of(spec, corpus)
    torch.autograd.backward(module.loss(batches.train.batch(0)))
    with torch.no_grad():
        module.eval()
        module.on_validation_epoch_start()
        for index, batch in enumerate(batches.evaluation[Split.VALID]):
            module.validation_step(batch, index)
        module.on_validation_epoch_end()
        # A validation need not give every metric.
        _check_metrics(module, Split.VALID, {"loss", spec.selection[0].removeprefix("valid/")})
        module.on_test_epoch_start()
        for index, batch in enumerate(batches.evaluation[Split.TEST]):
            module.test_step(batch, index)
        module.on_test_epoch_end()
        _check_metrics(module, Split.TEST, known.test_metrics)
    state = module.model.state_dict()
    task.model_of(spec, state).load_state_dict(state)


def _few_examples(spec: CellSpec) -> tuple[CellSpec, ExampleCorpus]:
    generator = examples_of(spec.data, TASKS.definition(spec.task))
    splits = {split: generator.generate(spec.data.corpus, spec.data.seed, split, ROWS) for split in Split}
    corpus = ExampleCorpus(splits, generator.tokens, generator.classes, fingerprint="", unigram_loss=0.0, facts={})
    training = spec.training.model_copy(update={"batch_tokens": ROWS * generator.tokens})
    return spec.model_copy(update={"training": training}), corpus


def _check_metrics(module: TaskModule, split: Split, named: Collection[str]) -> None:
    defined = module.definitions(split)
    for name in named:
        if name not in module.results:
            problem = f"its class names the metric `{name}`, which a {split} pass does not give"
            raise ComponentError(problem, component=type(module), hint="give it in `summarise`, or do not name it")
        if name not in defined:
            problem = f"its `definitions` do not say what `{name}` means"
            raise ComponentError(problem, component=type(module), hint="say it in a line, for a table has it below")


def _attend(spec: CellSpec, which: Attention, classes: Sequence[type]) -> None:
    x = torch.randn(ROWS, TOKENS, spec.model.width, requires_grad=True)
    across = which is Attention.ENCODER_DECODER
    if across:
        cross_attention = attention_of(spec, which)
        check_components(cross_attention.eval(), x.detach(), past=False, classes=classes)
        attention: nn.Module = cross_attention
    else:
        attention = mixer_of(spec, which, attention_of)
        rehearse(attention.eval(), x.detach(), past=which is Attention.DECODER_SELF, classes=classes)
    attention.train()
    output = attention(x, torch.randn(ROWS, TOKENS + 1, spec.model.width)) if across else attention(x)
    if output.shape != x.shape:
        raise ComponentError(f"the {which} attention gives {tuple(output.shape)} for tokens {tuple(x.shape)}")
    output.sum().backward()


if __name__ == "__main__":
    answer(work)
