"""A whole agent loop on Bellwire, in plain Python with a scripted model. docs/agent-loop.md explains it.

    token=$(bellwire token create --scope agent --user ada --origin butler)
    BELLWIRE_TOKEN=$token python3 loop.py                      # approach A: a block after the tool's result
    BELLWIRE_TOKEN=$token python3 loop.py --style synthetic    # approach B: synthetic tool calls

Copy everything up to "The story" into your agent.
"""

import argparse
import json
import os
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

UNSEEN_MAX = 20  # The hub takes at most this many call ids in `unseen`.
INTERRUPTED = "error: the harness stopped before it recorded the result of this call"


class Interrupted(Exception):
    """Raised by a model that was stopped because a critical notification is waiting."""


class HubError(Exception):
    """The hub refused a request. The text says what to correct."""


class Hub:
    """Requests to the hub. All of them may be sent again: an event has an id, an injection a call_id."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def open(self, method, path, body=None, timeout=10):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, timeout=timeout)

    def call(self, method, path, body=None):
        for attempt in range(3):
            try:
                with self.open(method, path, body) as response:
                    return json.load(response)
            except urllib.error.HTTPError as refused:
                text = refused.read().decode(errors="replace")
                if refused.code not in (429, 503):
                    raise HubError(f"{method} {path}: {refused.code} {text}") from None
                error, seconds = ConnectionError(text), int(refused.headers.get("Retry-After", 1))
            except OSError as lost:
                error, seconds = lost, 0.2
            time.sleep(min(seconds, 5) if attempt < 2 else 0)
        raise error

    def publish(self, conversation_id, type, source, severity, payload, agent="main"):
        event = {"id": str(uuid.uuid4()), "type": type, "source": source, "severity": severity, "payload": payload}
        return self.call("POST", "/v1/events", event | {"conversation_id": conversation_id, "agent": agent})


class Signals:
    """The hints for one agent since its last injection."""

    def __init__(self):
        self.wake, self.immediate = threading.Event(), threading.Event()


class Hints(threading.Thread):
    """Follows the conversation's stream. A hint says that notifications are pending; only an injection takes them."""

    def __init__(self, hub, conversation_id):
        super().__init__(daemon=True)
        self.hub, self.path = hub, f"/v1/conversations/{quote(conversation_id, safe='')}/stream"
        self.agents = {}

    def of(self, agent):
        return self.agents.setdefault(agent, Signals())

    def run(self):
        while True:
            try:
                # The hub sends a comment every 15 seconds: a minute without one means that the connection is lost.
                with self.hub.open("GET", self.path, timeout=60) as stream:
                    self.read(stream)
            except OSError as lost:
                print(f"the stream is lost, trying again: {lost}", file=sys.stderr)
            # A new connection starts with the current state, so no wake is lost.
            time.sleep(1)

    def read(self, stream):
        name = None
        for line in stream:
            field, _, value = line.decode().strip().partition(": ")
            if field == "event":
                name = value
            elif field == "data" and name in ("wake", "immediate"):
                getattr(self.of(json.loads(value)["agent"]), name).set()


class History:
    """The messages of one agent, and the call ids of injections whose answers are not among them. Both are in one file,
    which is replaced as a whole: after a crash every answer is either in the messages or known as lost."""

    def __init__(self, file=None):
        self.file = file
        self.messages = []
        self.asked = []  # Call ids of the current step; its answers are about to be added.
        self.lost = []  # Call ids whose answers the model will never see; sent as `unseen`.
        if file and file.exists():
            saved = json.loads(file.read_text())
            self.messages, self.lost = saved["messages"], saved["lost"]

    def ask(self, call_id):
        self.asked.append(call_id)
        self.save()

    def add(self, messages):
        """Adds messages that contain the answers of every call id of this step."""
        self.messages += messages
        self.asked = []
        self.save()

    def give_up(self):
        """The current step failed: its answers will not be added."""
        self.lost, self.asked = self.lost + self.asked, []

    def save(self):
        if self.file:
            new = self.file.with_suffix(".new")
            new.write_text(json.dumps({"messages": self.messages, "lost": self.lost + self.asked}, indent=1))
            new.replace(self.file)


class Loop:
    """One agent: a model, its tools, and Bellwire at the four injection points."""

    def __init__(self, hub, hints, conversation_id, model, tools, style="block", agent="main", file=None):
        self.hub, self.model, self.tools, self.style, self.agent = hub, model, tools, style, agent
        self.path = f"/v1/conversations/{quote(conversation_id, safe='')}"
        self.signals, self.history = hints.of(agent), History(file)
        # Without this paragraph a careful model treats the blocks as an attack.
        shape = "&shape=openai_chat" if style == "synthetic" else ""
        prompt = hub.call("GET", f"{self.path}/system_prompt?style={style}{shape}")
        # Approach B: providers refuse calls of a tool that is not defined.
        self.definitions = [prompt["tool"]] if "tool" in prompt else []
        self.history.messages[:1] = [{"role": "system", "content": "You are a butler.\n\n" + prompt["system_prompt"]}]

    def turn(self, text=None):
        """One turn, started by the user's text or, without one, by a wake. Returns the model's last reply."""
        self.history.give_up()
        messages = self.placed(text, self.take("turn_start", new_id("turn"), wake_only=text is None))
        self.history.add(messages)
        if messages:
            return self.work()
        self.end_turn()  # An earlier turn has taken what the wake was for.
        return None

    def resume(self):
        """Continues a turn that a crash cut off. Returns None if there is none."""
        self.history.give_up()
        last = self.history.messages[-1]
        if last.get("tool_calls"):
            # The tools ran, and their results are lost. Whether they had an effect is not known: say so.
            self.add_results(last["tool_calls"], [(INTERRUPTED, None)] * len(last["tool_calls"]), fresh=True)
        elif last["role"] == "system" or (last["role"] == "assistant" and not self.end_turn()):
            return None
        return self.work()

    def work(self):
        while True:
            reply = self.ask_model()
            self.history.add([reply])
            calls = reply.get("tool_calls")
            if calls:
                with ThreadPoolExecutor() as pool:
                    self.add_results(calls, list(pool.map(self.run_tool, calls)))
            elif not self.end_turn():
                return reply["content"]

    def ask_model(self):
        while True:
            try:
                return self.model(self.history.messages, self.definitions, self.signals.immediate)
            except Interrupted:
                self.history.add(self.placed(None, self.take("immediate", new_id("now"))))

    def end_turn(self):
        """Ends the turn. Returns True if the model must continue: a pending notification would wake it at once."""
        messages = self.placed(None, self.take("turn_end", new_id("end"), wake_only=True))
        self.history.add(messages)
        return bool(messages)

    def run_tool(self, call):
        """The result, and the outcome for the hub, which publishes it as an event: do not publish it again."""
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        observed = {"tool_name": name, "arguments": arguments}
        try:
            return self.tools[name](**arguments), observed | {"outcome": "success"}
        except Exception as error:
            outcome = "timeout" if isinstance(error, TimeoutError) else "failure"
            observed |= {"outcome": outcome, "error_type": type(error).__name__, "error_message": str(error)}
            return f"error: {error}", observed

    def add_results(self, calls, outcomes, fresh=False):
        """Adds the results of all tool calls of one reply. The first one carries the pending notifications."""
        results, synthetic = [], []
        for call, (text, observed) in zip(calls, outcomes):
            call_id = new_id("again") if fresh else call["id"]
            answer = self.take("after_tool", call_id, tool_result=text, observed=observed)
            results.append({"role": "tool", "tool_call_id": call["id"], "content": answer["content"]})
            synthetic += answer.get("messages", [])
        # Providers require all results directly after the calls, so synthetic calls come after the last result.
        self.history.add(results + synthetic)

    def take(self, point, call_id, **more):
        """Takes the pending notifications at an injection point."""
        # Cleared before the request: a hint that arrives during it is kept and costs at most one empty injection.
        self.signals.immediate.clear()
        if point == "turn_start":
            self.signals.wake.clear()
        unseen = self.history.lost[:UNSEEN_MAX]
        self.history.ask(call_id)
        body = {"point": point, "call_id": call_id, "agent": self.agent, "style": self.style, "unseen": unseen}
        body |= {key: value for key, value in more.items() if value is not None}
        if self.style == "synthetic":
            body["shape"] = "openai_chat"
        try:
            answer = self.hub.call("POST", f"{self.path}/inject", body)
        except OSError as error:
            # The agent works on without its hub. The request may have arrived, so its answer counts as lost.
            print(f"the hub does not answer: {error}", file=sys.stderr)
            self.history.asked.remove(call_id)
            self.history.lost.append(call_id)
            return {"block": "", "content": more.get("tool_result", "")}
        for warning in answer.get("warnings", []):
            print(f"warning: {warning}", file=sys.stderr)
        self.history.lost = self.history.lost[len(unseen):]
        return answer

    def placed(self, text, answer):
        """A user message with the block at its end (approach A), or followed by the synthetic calls (approach B)."""
        content = "\n\n".join(part for part in (text, answer["block"]) if part)
        message = [{"role": "user", "content": content}] if content else []
        return message + answer.get("messages", [])


def new_id(prefix):
    """Unique in the conversation. A call_id that was used before gets its old answer again."""
    return f"{prefix}_{uuid.uuid4().hex}"


# The story: a scripted model, its tools, and events that happen meanwhile.


class ScriptedModel:
    """Replace it with a call of your provider's API. Its n-th reply is the n-th step of the script."""

    def __init__(self, name, script):
        self.name, self.script, self.shown = name, script, 0

    def __call__(self, messages, definitions, interrupted):
        self.show(messages)
        step = self.script[self.replies(messages)] if not self.is_done(messages) else says("Noted.")
        return step(messages, interrupted) if callable(step) else step

    def replies(self, messages):
        own = (one for one in messages if one["role"] == "assistant" and "_system_notification" not in names(one))
        return sum(1 for _ in own)

    def is_done(self, messages):
        return self.replies(messages) >= len(self.script)

    def show(self, messages):
        for message in messages[self.shown :]:
            if message["role"] != "system":
                called = f" calls {', '.join(names(message))}" if names(message) else ""
                text = f"\n{message['content']}" if message["content"] else ""
                print(f"--- {self.name}: {message['role']}{called}{text}", flush=True)
        self.shown = len(messages)


def named(tools):
    return {tool.__name__: tool for tool in tools}


def names(message):
    return [call["function"]["name"] for call in message.get("tool_calls", [])]


def says(text):
    return {"role": "assistant", "content": text}


def calls(*made):
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in made]
    tool_calls = [{"id": new_id("call"), "type": "function", "function": function} for function in functions]
    return says(None) | {"tool_calls": tool_calls}


class Story:
    """An agent repairs a test. Files change, a sub-agent helps, the budget runs out, and a build wakes the agent."""

    def __init__(self, hub, conversation_id, style, file):
        self.hub, self.conversation_id, self.style = hub, conversation_id, style
        hub.call("PUT", f"/v1/conversations/{quote(conversation_id, safe='')}", {"user_id": "ada"})
        self.hints = Hints(hub, conversation_id)
        self.hints.start()
        tools = (self.read_file, self.lint, self.run_tests, self.delegate, self.start_build)
        script = [
            calls(("read_file", {"path": "notes.md"})),
            calls(("run_tests", {}), ("lint", {})),
            calls(("delegate", {"task": "Find the flaky test."})),
            calls(("start_build", {})),
            self.think,
            says("The build passed. That is all."),
        ]
        self.butler = ScriptedModel("butler", script)
        self.loop = Loop(hub, self.hints, conversation_id, self.butler, named(tools), style, file=file)

    def play(self):
        if self.loop.resume() is None and not self.is_over():
            self.changed("notes.md")
            self.loop.turn("Repair the flaky test.")
        while not self.is_over():
            if not self.wake(30):
                sys.exit("no wake hint within 30 seconds")
        self.butler.show(self.loop.history.messages)

    def wake(self, seconds=None):
        """Waits for a wake hint while idle, then runs a turn without text of the user."""
        woken = self.loop.signals.wake.wait(seconds)
        if woken:
            self.loop.turn()
        return woken

    def is_over(self):
        return self.butler.is_done(self.loop.history.messages)

    def changed(self, path, agent="main"):
        self.publish("source.file.changed", "file_watcher", "info", {"path": path}, agent)

    def publish(self, *event):
        self.hub.publish(self.conversation_id, *event)

    def read_file(self, path):
        self.changed("src/net.py")
        return "The network test fails now and then."

    def run_tests(self):
        raise TimeoutError("no answer after 5 s")

    def lint(self):
        self.changed("src/main.py")
        return "clean"

    def delegate(self, task):
        """A sub-agent is another loop in the same conversation, under its own agent name."""
        scout = ScriptedModel("scout", [calls(("search", {"text": "sleep"})), says("It is tests/net.py: it sleeps.")])
        self.scout = new_id("scout")
        tools = named([self.search])
        return Loop(self.hub, self.hints, self.conversation_id, scout, tools, self.style, self.scout).turn(task)

    def search(self, text):
        self.changed("docs/index.md")
        self.changed("tests/net.py", self.scout)
        return "tests/net.py:7"

    def start_build(self):
        threading.Thread(target=self.build, daemon=True).start()
        return "Build 17 is started."

    def build(self):
        """Ends after the turn, so that the agent must be woken."""
        while self.hub.call("GET", self.loop.path)["presence"] == "working":
            time.sleep(0.05)
        self.publish("task.background.complete", "ci", "info", {"task_id": "17", "name": "build 17"})

    def think(self, messages, interrupted):
        """A long reply, interrupted by a critical notification. Stop a real model by closing its response stream."""
        if "budget exceeded" in str(messages[-1]["content"]):
            return says("The budget is used up. I stop here.")
        self.publish("budget.token.exceeded", "accounting", "critical", {"current": 51000, "limit": 50000})
        if interrupted.wait(30):
            raise Interrupted
        sys.exit("no immediate hint within 30 seconds")


def crash_after(loop, point):
    """Ends the process after the hub has answered and before the answer is saved."""
    take = loop.take

    def taken(at, *arguments, **more):
        answer = take(at, *arguments, **more)
        if at == point:
            os._exit(1)
        return answer

    loop.take = taken


def main():
    parser = argparse.ArgumentParser(description="An agent loop on Bellwire with a scripted model.")
    parser.add_argument("--style", choices=["block", "append", "synthetic"], default="block")
    parser.add_argument("--state", type=pathlib.Path, metavar="FILE", help="keep the history in FILE, and continue it")
    parser.add_argument("--crash", action="store_true", help="end the process in the middle of the turn")
    parser.add_argument("--wait", action="store_true", help="wait for wakes after the story")
    options = parser.parse_args()
    if "BELLWIRE_TOKEN" not in os.environ:
        sys.exit("BELLWIRE_TOKEN is not set: bellwire token create --scope agent --user ada --origin butler makes one")
    hub = Hub(os.environ.get("BELLWIRE_URL", "http://127.0.0.1:2355"), os.environ["BELLWIRE_TOKEN"])
    conversation_id = options.state.stem if options.state else new_id("loop")
    story = Story(hub, conversation_id, options.style, options.state)
    if options.crash:
        crash_after(story.loop, "after_tool")
    story.play()
    while options.wait:
        print(f"waiting: publish something for conversation {conversation_id}", file=sys.stderr)
        story.wake()
        story.butler.show(story.loop.history.messages)


if __name__ == "__main__":
    main()
