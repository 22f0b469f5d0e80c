#!/usr/bin/env python3
"""The agent of agent_command.py behind an HTTP endpoint.

    AGENT_TOKEN=secret python3 agent_http.py 8765

Requests must then carry `Authorization: Bearer secret`; without AGENT_TOKEN none
need to. Port 0 takes any free one; the address is printed.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent_command import roll_out

TOKEN = os.environ.get("AGENT_TOKEN")


class Agent(BaseHTTPRequestHandler):
    """Answers each POST with one rollout."""

    def do_POST(self):
        if TOKEN and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401, {"error": "wrong or missing token"})
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            return self.reply(200, roll_out(json.loads(body)))
        except (KeyError, TypeError, ValueError) as problem:
            return self.reply(400, {"error": repr(problem)})

    def reply(self, status: int, content: dict):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keeps quiet."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent)
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()
