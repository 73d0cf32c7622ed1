"""A real browser to look at pages with, through the pipe of its DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: The browser's program, None where there is none.
PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads from file descriptor 3 and writes to 4, whatever their numbers are here.
_START = """
import fcntl, os, sys
there, back = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(there, 3)
os.dup2(back, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_PATIENCE = 60.0


class Chromium:
    """One browser with one tab; a context manager."""

    def __enter__(self) -> Chromium:
        assert PROGRAM is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_there, self._to = os.pipe()
        self._from, write_there = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(read_there), str(write_there), PROGRAM, *_OPTIONS,
             f"--user-data-dir={self._profile.name}"],
            pass_fds=(read_there, write_there), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there)
        os.close(write_there)
        self._rest, self._last, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(_PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._to)
            os.close(self._from)
            self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the browser's answer; what happens meanwhile is added to `events`."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, page: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Load a page in a window of this size; `events` are those of this page."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        # Two frames later everything is laid out and painted.
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.call("Runtime.evaluate", expression=frames, awaitPromise=True)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def complaints(self) -> list[str]:
        """What the browser said in its console about the page."""
        said = [event for event in self.events if event["method"] in _SAID]
        return [json.dumps(event["params"]) for event in said]

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for, its own among them."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self._from, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


_SAID = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
