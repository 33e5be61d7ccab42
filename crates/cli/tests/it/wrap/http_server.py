"""A scripted MCP server over streamable HTTP: what it does is said by the name of the tool that is called. It prints its
port, and keeps what it was asked: GET /log."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = []
later = {}  # The events that a stream was closed before: last event id to events.
pushed = threading.Event()


def result(id, **more):
    return json.dumps({"result": {"content": [{"type": "text", "text": "ok"}], **more}, "jsonrpc": "2.0", "id": id})


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self, body=None):
        log.append({"method": self.command, "path": self.path, "body": body,
                    "headers": {name.lower(): value for name, value in self.headers.items()}})

    def answer(self, status, body=b"", kind="application/json", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events, end=b"0\r\n\r\n"):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            event = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(end)

    def do_GET(self):
        if self.path == "/log":
            return self.answer(200, json.dumps(log))
        self.note()
        if self.path != "/mcp":
            return self.answer(200, "some text", kind="text/plain")
        last = self.headers.get("Last-Event-ID")
        if last in later:
            return self.stream(later[last])
        if last is None and not pushed.is_set():
            pushed.set()
            return self.stream(['data: {"jsonrpc":"2.0","method":"notifications/pushed"}\n\n'])
        self.answer(405)

    def do_DELETE(self):
        self.note()
        self.answer(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.note(body if len(body) < 10_000 else len(body))
        message = json.loads(body)
        one = message if isinstance(message, dict) else message[0]
        id, method = one.get("id"), one.get("method")
        if id is None or method is None:
            return self.answer(202)
        if method == "initialize":
            body = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25"}}, indent=1)
            return self.answer(200, body, Mcp_Session_Id="s-1")
        tool = one["params"]["name"]
        if tool == "json":
            self.answer(200, result(id))
        elif tool == "pretty":
            self.answer(200, json.dumps(json.loads(result(id)), indent=2))
        elif tool == "sse":
            self.stream([": hello\r\n\r\n", f"event: message\r\nid: 5\r\ndata: {result(id)}\r\n\r\n"])
        elif tool == "lines":  # Data on several lines, and something behind the answer.
            lines = json.dumps(json.loads(result(id)), indent=1).split("\n")
            self.stream(["".join(f"data: {line}\n" for line in lines) + "\n", 'data: {"method":"after"}\n\n'])
        elif tool == "resumed":  # The answer comes on another stream.
            later["7"] = [f"id: 8\ndata: {result(id)}\n\n"]
            self.stream(["id: 7\nretry: 10\ndata: \n\n"])
        elif tool == "closed":
            self.stream([": nothing\n\n"])
        elif tool == "refused":
            self.answer(401, "who are you?", kind="text/plain")
        elif tool == "gone":
            self.answer(404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}')
        elif tool == "wrong":
            self.answer(400, json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "bad"}}))
        elif tool == "huge":
            self.answer(200, result(id, padding="x" * one["params"]["arguments"]["bytes"]))
        elif tool == "hang":
            threading.Event().wait()


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
