"""A web server on loopback that sends parts of files, counts bytes, and fails on request."""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by name, and how they are served."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.sent = 0  # bytes of bodies
        self.ranges = True
        self.etag = True
        self.denied: set[str] = set()
        self.lost_after: int | None = None  # bytes of a body after which the connection ends
        self.after_body = None  # called once a whole body was sent
        self.url = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *args):
        """Nothing."""

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        name, site = self.path.partition("?")[0].lstrip("/"), self.site
        if name in site.denied:
            return self._refuse(403)
        if name not in site.files:
            return self._refuse(404)
        content = whole = site.files[name]
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and site.ranges:
            start, stop = int(asked[1]), min(int(asked[2] or len(whole)) + 1, len(whole))
            content = whole[start:stop]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(whole)}")
        else:
            self.send_response(200)
        if site.etag:
            self.send_header("ETag", f'"{hashlib.md5(whole).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self._send(content)

    def _send(self, content):
        site, lost = self.site, self.site.lost_after
        site.sent += len(content)
        try:
            if lost is not None and len(content) > lost:
                self.wfile.write(content[:lost])
                self.close_connection = True
                return
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):  # the client has read enough
            self.close_connection = True
        if site.after_body is not None:
            site.after_body()

    def _refuse(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving():
    """A site on a free port of loopback."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
