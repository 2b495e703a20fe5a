"""A browser at the end of a wire: the W3C WebDriver protocol, spoken with the standard library."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPENER = build_opener(ProxyHandler({}))  # the driver is on this machine


class Browser:
    def __init__(self, port, profile):
        self.root = f"http://127.0.0.1:{port}"
        options = {
            "args": [*FLAGS, f"--user-data-dir={profile}"],
            "binary": shutil.which("chromium"),
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._send("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.root += f"/session/{made['sessionId']}"

    def _send(self, path, body=None, method="POST"):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = Request(
            self.root + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with OPENER.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, page):
        self.log()  # forget what happened before
        self._send("/url", {"url": Path(page).resolve().as_uri()})

    def run(self, script, *arguments):
        """The value of a JavaScript function body in the page."""
        return self._send("/execute/sync", {"script": script, "args": list(arguments)})

    def log(self):
        """Everything the console said since the last time."""
        return self._send("/se/log", {"type": "browser"})

    def requests(self):
        """Addresses of all requests since the last time."""
        events = [
            json.loads(entry["message"]) for entry in self._send("/se/log", {"type": "performance"})
        ]
        sent = (event["message"] for event in events)
        return [
            e["params"]["request"]["url"]
            for e in sent
            if e["method"] == "Network.requestWillBeSent"
        ]

    def press(self, element_id, keys):
        using = {"using": "css selector", "value": f"#{element_id}"}
        element = next(iter(self._send("/element", using).values()))
        self._send(f"/element/{element}/value", {"text": keys})

    def click(self, element_id):
        using = {"using": "css selector", "value": f"#{element_id}"}
        element = next(iter(self._send("/element", using).values()))
        self._send(f"/element/{element}/click")

    def tell(self, command, **parameters):
        """A command of the developer tools protocol."""
        return self._send("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, phone=False):
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, name):
        feature = {"name": "prefers-color-scheme", "value": name}
        self.tell("Emulation.setEmulatedMedia", media="", features=[feature])

    def picture(self, whole=False):
        """PNG of the window, or of the whole page."""
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def pdf(self):
        return base64.b64decode(self._send("/print", {"background": True}))

    def close(self):
        self._send("", method="DELETE")


@contextmanager
def browser():
    """A fresh headless Chromium, gone at the end."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        raise RuntimeError(
            "chromium and chromedriver are needed: `make browser-test` says how to get them."
        )
    process = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        for line in process.stdout:
            started = re.search(r"started successfully on port (\d+)", line)
            if started:
                break
        else:
            raise RuntimeError("chromedriver did not start.")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            found = Browser(int(started[1]), profile)
            try:
                yield found
            finally:
                found.close()
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
