"""An endpoint on this machine that keeps what is posted to it."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Endpoint:
    taken: list = field(default_factory=list)
    """Every body, decoded, in order."""
    url: str = ""
    status: int = 200
    delay: float = 0.0
    answered: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def listening(self):
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                content = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.taken.append(json.loads(content))
                time.sleep(endpoint.delay)
                self.send_response(endpoint.status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                endpoint.answered.set()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
