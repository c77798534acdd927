"""Serves a page until it is told to end. The runtime asks /healthz whether it is well."""

import html
import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

config = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])
title = html.escape(str(config["board"]["title"]))
page = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><h1>{title}</h1></html>"


class Board(BaseHTTPRequestHandler):
    def do_GET(self):
        pages = {"/": ("text/html; charset=utf-8", page), "/healthz": ("text/plain", "well\n")}
        kind, text = pages.get(self.path, ("text/plain", "nothing here\n"))
        body = text.encode()
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        print(format % arguments, file=sys.stderr, flush=True)


# SIGTERM is how a run ends its commands.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("127.0.0.1", int(os.environ["BOARD_PORT"])), Board).serve_forever()
