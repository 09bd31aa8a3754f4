"""Text to tokens at the size of the papers' corpora: what the first start costs, and what every later one does.

- Stream: generated words with the frequencies of Zipf's law, as many distinct ones as WikiText-103 has, and
  KDX_BENCHMARK_TOKENS tokens, a fifth of its number unless said otherwise.
- Batches: cut anew at each start; lengths alone, so as many pairs as there are in WMT'14 En-De.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TOKENS = 20_600_000
HELD_OUT = {"valid": 217_646, "test": 245_569}  # tokens
DISTINCT = 267_735
WORDS_A_LINE = 90
BATCHED = (160_239, 4_500_000)  # pairs

# Run in a process of its own: the seconds that loading takes, and what it adds to the process's memory.
LOAD = """
import json, re, sys, time
from pathlib import Path
from kdx.data.stream import load_stream
from kdx.grid.sections import Data

def megabytes(of):
    return int(re.search(of + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000

data = Data.model_validate_json(sys.argv[1])
before, wall, used = megabytes("VmRSS"), time.perf_counter(), time.process_time()
corpus = load_stream(data)
print(json.dumps({
    "seconds": round(time.perf_counter() - wall, 2),
    "CPU seconds": round(time.process_time() - used, 2),
    "MB more": round(megabytes("VmRSS") - before),
    "MB more at the peak": round(megabytes("VmHWM") - before),
}))
"""


def measure() -> dict[str, object]:
    """Seconds, and MB of memory, of first and later starts."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KDX_DATA"] = str(Path(folder) / "home")
        return {"stream": _stream(Path(folder)), "batches": _batches()}


def _starts(name: str, source: Path) -> dict[str, object]:
    from kdx.data.prepare import prepare

    prepare(name, source)
    result: dict[str, object] = {}
    for which in ("first start", "second start", "third start"):
        command = [sys.executable, "-c", LOAD, json.dumps({"corpus": name})]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result[which] = json.loads(done.stdout)
    return result


def _stream(folder: Path) -> dict[str, object]:
    tokens = int(os.environ.get("KDX_BENCHMARK_TOKENS", TOKENS))
    source = folder / "stream"
    source.mkdir()
    for split, count in {"train": tokens, **HELD_OUT}.items():
        _generate(source / f"{split}.txt", count)
    size = (source / "train.txt").stat().st_size
    return {"tokens": tokens, "MB of text": round(size / 1e6)} | _starts("stream", source)


def _generate(path: Path, tokens: int) -> None:
    draw = np.random.default_rng(len(path.name))
    weights = 1 / (np.arange(1, DISTINCT + 1) + 2.7)
    bounds = np.cumsum(weights / weights.sum())
    # The commoner a word the shorter; with the space, 5.2 bytes in the mean, as in WikiText-103.
    words = np.array([_spelled(rank) for rank in range(DISTINCT)], dtype=object)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, tokens, 1 << 20):
            ranks = np.searchsorted(bounds, draw.random(min(1 << 20, tokens - start)))
            text = words[np.minimum(ranks, DISTINCT - 1)].tolist()
            for place in range(0, len(text), WORDS_A_LINE):
                file.write(" ".join(text[place : place + WORDS_A_LINE]) + "\n")


def _spelled(rank: int) -> str:
    letters = "etaoins"
    word = letters[rank % 7]
    while rank := rank // 7:
        word += letters[rank % 7]
    return word


def _batches() -> dict[str, object]:
    from kdx.data.arrays import TokenLists
    from kdx.data.batching import ParallelBatches
    from kdx.data.parallel import ParallelText

    result: dict[str, object] = {}
    draw = np.random.default_rng(0)
    for pairs in BATCHED:
        source = np.clip(draw.lognormal(3.2, 0.5, pairs).astype(np.int64), 2, 128)
        target = np.clip((source * draw.lognormal(0, 0.2, pairs)).astype(np.int64), 2, 128)
        sides = [TokenLists(np.empty(0, np.int32), np.cumsum([0, *side])) for side in (source, target)]
        text = ParallelText(sides[0], sides[1], references=())
        start = time.process_time()
        batches = ParallelBatches(text, 4096)
        result[f"{pairs} pairs"] = {"CPU seconds": round(time.process_time() - start, 2), "batches": len(batches)}
    return result
