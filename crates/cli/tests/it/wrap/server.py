"""A scripted MCP server: what it does is said by the name of the tool that is called."""
import json
import os
import signal
import subprocess
import sys
import time

out = sys.stdout.buffer


def say(text):
    out.write(text.encode() if isinstance(text, str) else text)
    out.write(b"\n")
    out.flush()


def result(id, **more):
    say(json.dumps({"result": {"content": [{"type": "text", "text": "ok"}], **more}, "jsonrpc": "2.0", "id": id}))


def call(id, name, arguments):
    if name == "raw":  # Exactly these bytes.
        say(arguments["text"])
    elif name == "fail":
        result(id, isError=True)
    elif name == "structured":
        result(id, structuredContent={"content": []})
    elif name == "huge":
        result(id, padding="x" * arguments["bytes"])
    elif name == "exit":
        sys.exit(arguments["code"])
    elif name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "stubborn":  # Neither the end of its input nor SIGTERM ends it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        result(id, pid=os.getpid())
        sys.stdin.read()
        time.sleep(600)
    elif name == "leave":  # Dies, and leaves a process behind that holds its output.
        left = subprocess.Popen(["sleep", "600"])
        result(id, pid=left.pid)
        os._exit(0)
    elif name == "noise":  # Much output before the answer, whether or not it is read.
        for number in range(arguments["lines"]):
            say(json.dumps({"method": "notifications/message", "params": {"number": number, "data": "y" * 1000}}))
        result(id)
    elif name != "hang":
        result(id)


def handle(message):
    if message.get("method") == "tools/call":
        call(message["id"], message["params"]["name"], message["params"].get("arguments", {}))
    elif message.get("method") == "initialize":
        say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"serverInfo": {"name": "scripted"}}}))


signal.signal(signal.SIGUSR1, lambda *_: None)
for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
    except ValueError:
        print("not JSON:", line[:100], file=sys.stderr, flush=True)
        continue
    for one in message if isinstance(message, list) else [message]:
        handle(one)
sys.exit(7)
