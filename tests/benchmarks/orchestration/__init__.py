"""The short run that each tool sweeps, as a grid of kdx."""

GRID = """
name: one-step
task: prediction
data: {corpus: synthetic-language, train_lines: 500}
model: {width: 32, heads: 2, decoder_layers: 1, inner: 32}
training: {steps: 1, batch_tokens: 512, length: 64, warmup: 0}
"""
