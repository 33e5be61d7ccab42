"""A hub for the tests of an example, and a bad line to it."""

import asyncio
import json
import pathlib
import subprocess
import tempfile
import time
import urllib.request


class RunningHub:
    """A hub on a free port and a folder of its own, and an agent's token; by default one that may speak for anyone."""

    def __init__(self, program, per_hour, user="*"):
        self.folder = tempfile.TemporaryDirectory()
        data = pathlib.Path(self.folder.name, "data")
        # Nothing of the machine's own settings counts.
        environment = {"HOME": self.folder.name, "BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR": str(per_hour)}
        serve = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", data]
        self.log = open(pathlib.Path(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen(serve, env=environment, stdout=self.log, stderr=self.log)
        self.url = self.address(data / "hub.json")
        self.admin = (data / "admin.token").read_text().strip()
        create = [program, "token", "create", "--scope", "agent", "--user", user, "--origin", "butler", "--data-dir", data]
        self.token = subprocess.check_output(create, env=environment, stderr=self.log, text=True).strip()

    def address(self, note):
        deadline = time.monotonic() + 20
        while not (note.exists() and note.stat().st_size):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise AssertionError(f"the hub does not start:\n{self.log.read()}")
            time.sleep(0.05)
        return json.loads(note.read_text())["url"]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.log.close()
        self.folder.cleanup()

    def ask(self, path, body=None, method=None):
        headers = {"Authorization": f"Bearer {self.admin}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def publish(self, conversation_id, tool):
        """A tool elsewhere fails: news for this conversation."""
        payload = {"tool_name": tool, "error_type": "timeout"}
        event = {"type": "tool.call.failure", "source": "ci", "severity": "error", "payload": payload}
        self.ask("/v1/events", event | {"conversation_id": conversation_id})

    def inbox(self, user_id):
        return self.ask(f"/v1/users/{user_id}/notifications")["items"]

    def shown(self, conversation_id):
        """What the agent was shown, by the hub's own account."""
        return [one["content"] for one in self.ask(f"/v1/conversations/{conversation_id}/messages")["items"]]


class CuttingProxy:
    """Passes everything on; answers that are to be cut are lost on the way back."""

    def __init__(self, url):
        self.host, self.port = url.removeprefix("http://").split(":")
        self.ending, self.times = b"", 0

    def cut(self, ending, times):
        """Loses the next answers to requests whose path ends so."""
        self.ending, self.times = ending.encode(), times

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, reader, writer):
        there, back = await asyncio.open_connection(self.host, self.port)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                back.write(self.passed_on(head) + await self.body(reader, head))
                answer = await there.readuntil(b"\r\n\r\n")
                answer += await self.body(there, answer)
                if self.times and head.split(b" ")[1].endswith(self.ending):
                    self.times -= 1
                    break
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            back.close()
            writer.close()

    def passed_on(self, head):
        """The hub answers to its own name only; an answer that is not compressed says its length."""
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"host:", b"accept-encoding:"))]
        return b"\r\n".join([lines[0], f"Host: {self.host}:{self.port}".encode(), *lines[1:]])

    async def body(self, reader, head):
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return await reader.readexactly(int(line.split(b":")[1]))
        return b""
