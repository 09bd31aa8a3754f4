"""A headless Chromium by its own protocol, over a pipe: real keys, and all that it says and asks the network for."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

PATIENCE = 300.0  # seconds
_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}


def chromium() -> str:
    """The program; skips the test where there is none, and fails it in CI."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        reason = "no Chromium here (Debian: chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


class Browser:
    """One page at a time."""

    def __init__(self, program: str, folder: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage --remote-debugging-pipe"
        # The protocol is spoken on the descriptors 3 and 4.
        shell = ["bash", "-c", f'exec "$0" {flags} "$@" 3<&{to_browser} 4>&{from_browser}']
        self._process = subprocess.Popen(
            [*shell, program, f"--user-data-dir={folder}", "--window-size=1200,900", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """What happened since the page was opened."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._out)
        os.close(self._in)

    def open(self, page: Path | str, fragment: str = "") -> None:
        """Loads a page from the disk, or from an address."""
        whole = (page if isinstance(page, str) else page.as_uri()) + fragment
        # Another fragment of the same page would not load it again.
        for address in ("about:blank", whole):
            self.events.clear()
            self.ask("Page.navigate", url=address)
            while self.value("[location.href, document.readyState].join(' ')") != f"{address} complete":
                time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """What JavaScript makes of the expression."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Presses the key and lets the page do what follows."""
        code, text = _KEYS[key]
        about = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **about)
        self.value("new Promise((done) => setTimeout(done))")

    @contextmanager
    def screen(self, width: int) -> Iterator[None]:
        """A window of that many pixels."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        yield
        self.ask("Emulation.clearDeviceMetricsOverride")

    def complaints(self) -> list[dict[str, Any]]:
        """Errors, warnings and whatever else was written to the console."""
        return [event for event in self.events if event["method"] in _COMPLAINTS]

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser is silent"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        if "method" in answer:
            self.events.append(answer)
        return answer


_COMPLAINTS = frozenset({"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"})
