"""Synonyms: the names that other programs and papers have for keys and values of kdx."""

import re
from collections.abc import Iterable

from kdx.errors import did_you_mean as nearest_word

SYNONYMS: dict[str, tuple[str, ...]] = {
    # Words of a cell.
    "absolute": ("position: direct-sum",),
    "adam": ("training.optimiser: adamw",),
    "bfloat16": ("training.precision: bf16",),
    "bidirectional": ("filter: full",),
    "causal_lm": ("task: prediction",),
    "decoder_only": ("task: prediction",),
    "dot_product": ("kernel: exponential",),
    "exp": ("kernel: exponential",),
    "float32": ("training.precision: fp32",),
    "gaussian": ("kernel: rbf",),
    "gpt": ("task: prediction",),
    "kerple": ("position: kerple-log", "position: kerple-power"),
    "language_model": ("task: prediction",),
    "language_modeling": ("task: prediction",),
    "language_modelling": ("task: prediction",),
    "layer_norm": ("model.normalisation: layer",),
    "learnable": ("encoding: learned",),
    "linear_attention": ("kernel: elu",),
    "lm": ("task: prediction",),
    "local": ("filter: window",),
    "machine_translation": ("task: translation",),
    "mt": ("task: translation",),
    "nmt": ("task: translation",),
    "noam": ("training.schedule: inverse-sqrt",),
    "nope": ("position: none",),
    "performer": ("kernel: favor",),
    "post_ln": ("norm: post",),
    "post_norm": ("norm: post",),
    "pre_ln": ("norm: pre",),
    "pre_norm": ("norm: pre",),
    "rmsnorm": ("model.normalisation: rms",),
    "roformer": ("position: rotary",),
    "rope": ("position: rotary",),
    "rotary_embedding": ("position: rotary",),
    "seq2seq": ("task: translation",),
    "shaw": ("position: lookup",),
    "sliding_window": ("filter: window",),
    "softmax": ("kernel: exponential", "normaliser: row-sum"),
    "text_classification": ("task: classification",),
    "transformer_xl": ("position: relative",),
    "tsp": ("task: tour",),
    "wsd": ("training.schedule: warmup-stable-decay",),
    # Keys.
    "activation": ("model.feed_forward",),
    "batch": ("training.batch_tokens",),
    "beam_size": ("evaluation.beam",),
    "block_size": ("training.length",),
    "bptt": ("training.length",),
    "context": ("training.length",),
    "context_length": ("training.length",),
    "d_ff": ("model.inner",),
    "d_model": ("model.width",),
    "dataset": ("data.corpus",),
    "dim": ("model.width",),
    "dim_feedforward": ("model.inner",),
    "dropout": ("model.dropout",),
    "embed_dim": ("model.width",),
    "embedding_dim": ("model.width",),
    "eval_every": ("training.validate_every",),
    "eval_interval": ("training.validate_every",),
    "ffn_dim": ("model.inner",),
    "gqa": ("kv_heads",),
    "grad_accum": ("training.accumulate",),
    "grad_clip": ("training.clip",),
    "gradient_accumulation_steps": ("training.accumulate",),
    "gradient_clip_val": ("training.clip",),
    "heads": ("model.heads",),
    "hidden": ("model.width",),
    "hidden_dim": ("model.width",),
    "hidden_size": ("model.width",),
    "init": ("model.initialisation",),
    "intermediate_size": ("model.inner",),
    "iterations": ("training.steps",),
    "iters": ("training.steps",),
    "label_smoothing": ("training.label_smoothing",),
    "layers": ("model.encoder_layers", "model.decoder_layers"),
    "learning_rate": ("training.learning_rate",),
    "lr": ("training.learning_rate",),
    "lr_scheduler": ("training.schedule",),
    "mask": ("filter",),
    "max_grad_norm": ("training.clip",),
    "max_iters": ("training.steps",),
    "max_steps": ("training.steps",),
    "mqa": ("kv_heads",),
    "n_embd": ("model.width",),
    "n_head": ("model.heads",),
    "n_heads": ("model.heads",),
    "n_layer": ("model.encoder_layers", "model.decoder_layers"),
    "n_layers": ("model.encoder_layers", "model.decoder_layers"),
    "nhead": ("model.heads",),
    "num_beams": ("evaluation.beam",),
    "num_heads": ("model.heads",),
    "num_kv_heads": ("kv_heads",),
    "num_layers": ("model.encoder_layers", "model.decoder_layers"),
    "optim": ("training.optimiser",),
    "optimizer": ("training.optimiser",),
    "pe": ("position",),
    "positional_encoding": ("position", "encoding"),
    "scheduler": ("training.schedule",),
    "seed": ("seeds",),
    "seq_len": ("training.length",),
    "seq_length": ("training.length",),
    "sequence_length": ("training.length",),
    "steps": ("training.steps",),
    "tie_embeddings": ("model.embeddings",),
    "tokenizer": ("data.vocabulary",),
    "vocab": ("data.vocabulary", "data.vocabulary_size"),
    "vocab_size": ("data.vocabulary_size",),
    "warmup": ("training.warmup",),
    "warmup_steps": ("training.warmup",),
    "wd": ("training.weight_decay",),
    "weight_decay": ("training.weight_decay",),
    "window_size": ("left", "right"),
}
"""Name elsewhere, in small letters with underscores → a key of kdx, or `key: word`; several: whichever is meant."""

EXPLAINED = {
    "attention": "an attention is a choice of `kernel`, `position`, `filter`, `value` and `normaliser`",
    "batch_size": "kdx counts tokens, not examples: `training.batch_tokens`",
    "epochs": "kdx counts optimiser steps, not epochs: `training.steps`",
    "fp16": "kdx has no float16, which needs a scaled loss; 16 bits are `training.precision: bf16`",
    "patience": "kdx trains all of `training.steps`, and tests the weights of the best validation",
}
"""Name elsewhere → a sentence, where kdx has no such thing or has it otherwise."""
_SAME = {
    "early_stopping": "patience",
    "float16": "fp16",
    "max_epochs": "epochs",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
}


def did_you_mean(word: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str | None:
    """A hint at the name that kdx has for `word`, else at the nearest of the known words, or None.

    Args:
        known: what is allowed in its place; of several names, those among them are shown.
        elsewhere: top keys of a cell, where `word` may be meant for another place in it.
    """
    known = list(known)
    top = {*known, *elsewhere}
    name = word.lower().replace("-", "_").replace(" ", "_").rpartition(".")[2]
    sentence = EXPLAINED.get(_SAME.get(name, name))
    meant = re.findall("`(.*?)`", sentence) if sentence else SYNONYMS.get(name, ())
    here = [short for short in (_in(known, whole) for whole in meant) if short]
    here = here or [whole for whole in meant if re.split("[.:]", whole)[0] in top]
    if here:
        return sentence or f"did you mean {' or '.join(f'`{each}`' for each in here)}?"
    return nearest_word(word, known)


def _in(known: Iterable[str], name: str) -> str | None:
    """The form in which this name is among the known ones, or None."""
    key, _, word = name.partition(": ")
    forms = (word,) if word else (key, key.rpartition(".")[2])
    return next((form for form in forms if form in known), None)
