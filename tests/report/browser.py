"""Drive Debian's headless Chromium by the DevTools protocol, through a pipe."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import count

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)
LONGEST = 600  # seconds after which the browser ends, so that no test waits for it for ever


class Page:
    """A tab, with what its console has said that is wrong, and requests elsewhere."""

    def __init__(self, to_browser, from_browser):
        self._out, self._in, self._numbers = to_browser, from_browser, count(1)
        self._session, self.faults, self._loaded = None, [], False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        """A command's result; AssertionError if the browser refuses it."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        """The next message; of events, what tells of faults and of the page's load is kept."""
        text = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        message = json.loads(text)
        method, params = message.get("method", ""), message.get("params", {})
        told = params.get("entry", {}).get("level") or params.get("type")
        url = params.get("request", {}).get("url", "file:")
        if method == "Runtime.exceptionThrown" or told in ("warning", "error") or (
                not url.startswith(("file:", "data:"))):
            self.faults.append(params)
        self._loaded |= method == "Page.loadEventFired"
        return message

    def open(self, file, row="", width=1280, height=900, dark=False, script=True):
        """Load a file, at the address of a row, in a window of this size."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self._loaded = False
        # Another row of the page that is there already would load nothing without the number.
        self.send("Page.navigate", url=f"{file.as_uri()}?{next(self._numbers)}#{row}")
        while not self._loaded:
            self._next()

    def run(self, expression):
        """The value of an expression of JavaScript, or of what it promises."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, code=0):
        """Press and release a key, with the text that it types, if it types any."""
        typed = "\r" if key == "Enter" else key
        text = {"text": typed} if len(typed) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **(text if kind == "keyDown" else {}))

    def pdf(self):
        """The page as it is printed on A4."""
        return base64.b64decode(self.send(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)["data"])

    def screenshot(self, whole=False):
        """A PNG of the window, or of the whole page."""
        return base64.b64decode(self.send("Page.captureScreenshot",
                                          captureBeyondViewport=whole)["data"])


@contextmanager
def chromium():
    """A page of a browser that ends with the block."""
    to_browser, ours = os.pipe()
    theirs, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # The browser reads from 3 and writes to 4.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["timeout", str(LONGEST), "bash", "-c", shell, "bash", CHROMIUM, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={home}",
             "--disable-dev-shm-usage"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        with os.fdopen(ours, "wb") as out, os.fdopen(theirs, "rb") as back:
            try:
                yield Page(out, back)
            finally:
                process.terminate()
                process.wait()
