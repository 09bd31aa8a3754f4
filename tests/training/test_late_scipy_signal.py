"""`scipy.signal` is imported by whoever uses it, and not at the start of each process that trains."""

import subprocess
import sys

import pytest


def _python(text: str) -> str:
    """What another process prints."""
    return subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
def test_what_trains_imports_none_of_it() -> None:
    loaded = _python(
        "import sys, kdx.training.run; print(*(name for name in sys.modules if name.startswith('scipy.')))"
    )
    assert "scipy.signal" in loaded.split()
    assert not [name for name in loaded.split() if name.startswith("scipy.signal.")]


@pytest.mark.parametrize(
    "use",
    [
        "from scipy.signal import hilbert",
        "import scipy.signal; hilbert = scipy.signal.hilbert",
        "import scipy; hilbert = scipy.signal.hilbert",
        "import scipy.signal.windows; from scipy.signal import hilbert; scipy.signal.windows.hann(3)",
        "import scipy.signal as late; late.windows.hann(3); hilbert = late.hilbert",
    ],
)
def test_whoever_uses_it_has_all_of_it(use: str) -> None:
    asked = "print(hilbert([1.0, 0.0, 0.0, 0.0]).shape, sys.modules['scipy.signal'].__spec__.name)"
    assert _python(f"import sys, kdx.training; {use}; {asked}") == "(4,) scipy.signal"


def test_python_may_look_into_every_module() -> None:
    looked = "import inspect, sys, kdx.training; inspect.getmodule(inspect.currentframe())"
    assert _python(f"{looked}; print(sys.modules['scipy.signal'].__spec__)") == "None"
