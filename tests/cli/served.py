"""A `kdx serve` that was started, and questions to it."""

import http.client
import re
import signal
import subprocess

from terminal import KDX, Terminal
from waiting import GIVE_UP


class Served:
    """A server that was started, and questions to it."""

    def __init__(self, terminal: Terminal, *options: str) -> None:
        command = [KDX, "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=terminal.folder, env=terminal.environment, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stderr.readline()
        address = re.search(r"at (http://\S+:(\d+));", line)
        assert address, line
        self.address, self.port = address[1], int(address[2])

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def close(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(GIVE_UP)
        self.process.stderr.close()
        return code
