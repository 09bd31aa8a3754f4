"""Synonyms: the names that other programs and papers have for keys and values of kdx."""

import re
from collections import defaultdict
from collections.abc import Iterable

from kdx.errors import did_you_mean as nearest_word
from kdx.words import table

_NAMES_ELSEWHERE = {
    "position: direct-sum": "absolute",
    "training.optimiser: adamw": "adam",
    "training.precision: bf16": "bfloat16",
    "filter: full": "bidirectional",
    "task: prediction": "causal_lm decoder_only gpt language_model language_modeling language_modelling lm",
    "kernel: exponential": "dot_product exp softmax",
    "training.precision: fp32": "float32",
    "kernel: rbf": "gaussian",
    "position: kerple-log": "kerple",
    "position: kerple-power": "kerple",
    "model.normalisation: layer": "layer_norm",
    "encoding: learned": "learnable learned",
    "encoding: sinusoidal": "sinusoidal",
    "kernel: elu": "linear_attention",
    "filter: window": "local sliding_window",
    "task: translation": "machine_translation mt nmt seq2seq",
    "training.schedule: inverse-sqrt": "noam",
    "position: none": "nope",
    "kernel: favor": "performer",
    "norm: post": "post_ln post_norm",
    "norm: pre": "pre_ln pre_norm",
    "model.normalisation: rms": "rmsnorm",
    "position: rotary": "roformer rope rotary_embedding",
    "position: lookup": "shaw",
    "normaliser: row-sum": "softmax",
    "task: classification": "text_classification",
    "position: relative": "transformer_xl",
    "task: tour": "tsp",
    "training.schedule: warmup-stable-decay": "wsd",
    "model.feed_forward": "activation",
    "training.batch_tokens": "batch",
    "evaluation.beam": "beam_size num_beams",
    "training.length": "block_size bptt context context_length max_len max_length seq_len seq_length sequence_length",
    "model.inner": "d_ff dim_feedforward ffn_dim hidden intermediate_size",
    "model.width": "d_model dim embed_dim embedding_dim hidden hidden_dim hidden_size n_embd",
    "data.corpus": "dataset",
    "training.validate_every": "eval_every eval_interval",
    "kv_heads": "gqa mqa num_kv_heads",
    "training.accumulate": "grad_accum gradient_accumulation_steps",
    "training.clip": "grad_clip gradient_clip_val max_grad_norm",
    "model.initialisation": "init",
    "training.steps": "iterations iters max_iters max_steps",
    "model.encoder_layers": "layers n_layer n_layers num_layers",
    "model.decoder_layers": "layers n_layer n_layers num_layers",
    "training.learning_rate": "lr",
    "training.schedule": "lr_scheduler scheduler",
    "filter": "mask",
    "model.heads": "n_head n_heads nhead num_heads",
    "training.optimiser": "optim optimizer",
    "position": "pe positional_encoding",
    "encoding": "positional_encoding",
    "seeds": "seed",
    "model.embeddings": "tie_embeddings",
    "data.vocabulary": "tokenizer vocab",
    "data.vocabulary_size": "vocab vocab_size",
    "training.warmup": "warmup_steps",
    "training.weight_decay": "wd",
    "left": "window_size",
    "right": "window_size",
}
"""Key of kdx, or `key: value` → the names that other programs and papers have for it, with underscores."""
SYNONYMS: dict[str, list[str]] = defaultdict(list)
"""Name elsewhere → what it is called in kdx; several if it may mean each of them."""
for _known, _names in _NAMES_ELSEWHERE.items():
    for _name in _names.split():
        SYNONYMS[_name].append(_known)

EXPLAINED = {
    "attention": "an attention is a choice of `kernel`, `position`, `filter`, `value` and `normaliser`",
    "batch_size": "kdx counts tokens, not examples: `training.batch_tokens`",
    "causal": "the task says whether an attention is causal, as in a decoder; `filter` narrows it",
    "device": "a grid says what is computed, not where: kdx sweep --devices",
    "epochs": "kdx counts optimiser steps, not epochs: `training.steps`",
    "fp16": "kdx has no float16, which needs a scaled loss; 16 bits are `training.precision: bf16`",
    "patience": "kdx trains all of `training.steps`, and tests the weights of the best validation",
}
"""Name elsewhere → a sentence, where kdx has no such thing or has it otherwise."""
_SAME = {
    "accelerator": "device",
    "devices": "device",
    "early_stopping": "patience",
    "float16": "fp16",
    "gpus": "device",
    "is_causal": "causal",
    "max_epochs": "epochs",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
}


def did_you_mean(word: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str | None:
    """Return a hint at the name that kdx has for `word`, else at the nearest of the known words, or None.

    Args:
        known: what is allowed in its place; of several names, those among them are shown.
        elsewhere: top keys of a cell, where `word` may be meant for another place in it.
    """
    known = list(known)
    top = {*known, *elsewhere}
    name = word.lower().replace("-", "_").replace(" ", "_").rpartition(".")[2]
    sentence = EXPLAINED.get(_SAME.get(name, name))
    meant = re.findall("`(.*?)`", sentence) if sentence else SYNONYMS.get(name) or _in_sections(word)
    here = [short for short in (_in(known, whole) for whole in meant) if short]
    here = here or [whole for whole in meant if re.split("[.:]", whole)[0] in top]
    if here or (sentence and not meant):
        return sentence or f"did you mean {' or '.join(f'`{each}`' for each in here)}?"
    return nearest_word(word, known)


def _in_sections(name: str) -> list[str]:
    """Return the keys of sections that have the name, such as `training.steps` for `steps`; none of a dotted name."""
    return [factor for factor in table.factors() if "." in factor and factor.partition(".")[2] == name]


def _in(known: Iterable[str], name: str) -> str | None:
    """Return the form in which this name is among the known ones, or None."""
    key, _, word = name.partition(": ")
    forms = (word,) if word else (key, key.rpartition(".")[2])
    return next((form for form in forms if form in known), None)
