"""The Python code of docs/frameworks.md against a hub of its own. Run by scripts/test-examples.

The hub, the frameworks and the code of the page are real; a script stands only where the model is.
"""

import asyncio
import logging
import os
import pathlib
import sys
import tempfile
import threading
import types
import unittest
import uuid

from hub import CuttingProxy, RunningHub
from page import code

FOLDER = tempfile.TemporaryDirectory()
pathlib.Path(FOLDER.name, "bellwire.py").write_text(code("Python", "python"))
unittest.addModuleCleanup(FOLDER.cleanup)
sys.path.insert(0, FOLDER.name)
from bellwire import Conversation

BLOCK = "<notifications id="


class Script:
    """What a model does at each request: "build" calls the tool, "say" ends the turn, an exception is raised, and a function
    is called for one of these. Keeps each request as a list of texts."""

    def __init__(self, *steps):
        self.steps, self.requests = list(steps), []

    def next(self, texts):
        self.requests.append(texts)
        step = self.steps.pop(0)
        step = step() if callable(step) and not isinstance(step, type) else step
        if isinstance(step, Exception):
            raise step
        return step


def call_id():
    return f"call_{uuid.uuid4()}"


def example(section):
    """The code of a section as a module; the test sets its run_build."""
    module = types.ModuleType(section)
    exec(compile(code(section, "python"), section, "exec"), module.__dict__)
    return module


class Framework:
    """The same tests for each framework, with its own way to script a model."""

    # What a tool raises after which the run goes on.
    failure = RuntimeError
    # Whether the code reports how tools end.
    reports_outcomes = True

    @classmethod
    def setUpClass(cls):
        cls.hub = RunningHub(os.environ["BELLWIRE"], 30, user="me")
        cls.addClassCleanup(cls.hub.stop)
        cls.example = example(cls.section)

    def setUp(self):
        os.environ["BELLWIRE_URL"], os.environ["BELLWIRE_TOKEN"] = self.hub.url, self.hub.token
        self.id = f"chat/{uuid.uuid4()}"
        self.conversation = Conversation(self.id)
        self.example.run_build = lambda: "built"

    def play(self, script, history=(), text="Build."):
        return self.turn(script, list(history), text)

    def publish(self, name):
        self.hub.publish(self.id, name)

    def publish_once(self, name):
        """A build during which something is published; later builds are quiet."""

        def build():
            self.publish(name)
            self.example.run_build = lambda: "again"
            return "built"

        return build

    def conversation_at_hub(self, path=""):
        return self.hub.ask(self.conversation.path + path)

    def counts(self, script, word):
        return ["\n".join(texts).count(word) for texts in script.requests]

    def test_what_arrives_while_a_tool_runs_is_read_once(self):
        self.example.run_build = self.publish_once("one")
        script = Script("build", "build", "say")
        history = self.play(script)
        self.assertEqual(self.counts(script, "tool_fail: one"), [0, 1, 1], script.requests)
        *_, before, block = script.requests[1]
        # In the tool's own result, or a part directly behind it.
        self.assertTrue(block.startswith(f"built\n\n{BLOCK}") or (before, block[:18]) == ("built", BLOCK), block)
        boundary = self.conversation_at_hub()["boundary"]
        self.assertTrue(script.requests[0][0].startswith("Be brief."), script.requests[0])
        self.assertIn(boundary, script.requests[0][0])
        self.assertIn(boundary, block)
        self.assertEqual(self.conversation_at_hub()["presence"], "idle")

        self.publish("two")
        script = Script("build", "say")
        self.play(script, history, "And now?")
        self.assertEqual(self.counts(script, "tool_fail: one"), [1, 1], script.requests)
        self.assertEqual(self.counts(script, "tool_fail: two"), [1, 1], script.requests)
        self.assertTrue(any(text.startswith(f"And now?\n\n{BLOCK}") for text in script.requests[0]), script.requests[0])
        self.assertEqual(len(self.conversation_at_hub("/messages")["items"]), 2)

    def test_the_block_comes_after_a_failed_tool_too(self):
        def fail():
            self.publish("one")
            raise self.failure("no compiler")

        self.example.run_build = fail
        script = Script("build", "say")
        self.play(script)
        self.assertEqual(self.counts(script, "tool_fail: one"), [0, 1], script.requests)
        self.assertEqual(self.counts(script, "no compiler"), [0, 1], script.requests)
        self.assertEqual(self.counts(script, "tool_fail: build"), [0, 0], "the model has read it itself")
        path = f"/v1/events?conversation_id={self.id.replace('/', '%2F')}&limit=50"
        sources = [event["source"] for event in self.hub.ask(path)["items"] if event["type"] == "tool.call.failure"]
        self.assertEqual(sources.count("tool_executor"), int(self.reports_outcomes), sources)

    def test_what_a_failed_turn_took_comes_again(self):
        self.example.run_build = self.publish_once("one")
        script = Script("build", RuntimeError("overloaded"))
        with self.assertRaisesRegex(Exception, "overloaded"):
            self.play(script)
        self.assertEqual(self.counts(script, "tool_fail: one"), [0, 1])
        self.assertEqual(self.conversation_at_hub()["presence"], "idle")
        script = Script("say")
        self.play(script)
        self.assertEqual(self.counts(script, "tool_fail: one"), [1], script.requests)

    def test_the_turn_goes_on_for_what_would_wake_the_agent(self):
        def late():
            event = {"type": "task.background.complete", "source": "ci", "severity": "info", "conversation_id": self.id}
            self.hub.ask("/v1/events", event | {"payload": {"task_id": "late", "result_summary": "done"}})
            return "say"

        script = Script(late, "say")
        self.play(script)
        self.assertEqual(self.counts(script, "task_done: late"), [0, 1], script.requests)

    def test_a_killed_hub_costs_the_notifications_and_nothing_else(self):
        hub = RunningHub(os.environ["BELLWIRE"], 30, user="me")
        os.environ["BELLWIRE_URL"], os.environ["BELLWIRE_TOKEN"] = hub.url, hub.token

        def build():
            hub.process.kill()
            hub.process.wait(timeout=20)
            return "built"

        self.example.run_build = build
        script = Script("build", "build", "say")
        with self.assertLogs(level=logging.WARNING) as logs:
            self.play(script)
        self.assertEqual("\n".join(script.requests[-1]).count("built"), 2, script.requests)
        self.assertIn("Bellwire is away", logs.output[0])
        self.conversation, script = Conversation("new"), Script("say")
        with self.assertLogs(level=logging.WARNING):
            self.play(script)
        self.assertEqual(script.requests, [["Be brief.", "Build."]])
        hub.stop()

    def test_a_lost_answer_is_given_again(self):
        with Cut(self.hub.url) as proxy:
            os.environ["BELLWIRE_URL"] = proxy.url
            publish = self.publish_once("one")
            self.example.run_build = lambda: proxy.cut("/inject", times=1) or publish()
            script = Script("build", "build", "say")
            with self.assertLogs(level=logging.WARNING):
                self.play(script)
        self.assertEqual(self.counts(script, "tool_fail: one"), [0, 0, 1], script.requests)


class OpenAIAgents(Framework, unittest.TestCase):
    section = "OpenAI Agents SDK"

    def turn(self, script, history, text):
        from agents import set_tracing_disabled
        from agents.testing import ScriptedModel, assistant_message, function_call

        def answer(call):
            texts = [str(item.get("output") or item.get("content") or item) for item in call.input]
            step = script.next([call.system_instructions, *texts])
            return [function_call("build", {}, call_id=call_id()) if step == "build" else assistant_message("Done.")]

        set_tracing_disabled(True)
        model = ScriptedModel([{"responder": answer}] * len(script.steps))
        return asyncio.run(self.example.turn(model, self.conversation, history, text))


class LangGraph(Framework, unittest.TestCase):
    section = "LangGraph"

    def turn(self, script, history, text):
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        class Scripted(BaseChatModel):
            _llm_type = "scripted"

            def bind_tools(self, tools, **_):
                return self

            def _generate(self, messages, **_):
                step = script.next([message.text for message in messages])
                calls = [{"name": "build", "args": {}, "id": call_id()}] if step == "build" else []
                return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])

        graph = self.example.graph(Scripted(), self.conversation)
        return self.example.turn(graph, self.conversation, history, text)


class PydanticAI(Framework, unittest.TestCase):
    section = "Pydantic AI"
    reports_outcomes = False

    @property
    def failure(self):
        from pydantic_ai import ModelRetry

        return ModelRetry

    def turn(self, script, history, text):
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        def answer(messages, info):
            parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
            step = script.next([info.instructions, *(str(part.content) for part in parts)])
            part = ToolCallPart("build", {}, tool_call_id=call_id()) if step == "build" else TextPart("Done.")
            return ModelResponse([part])

        return self.example.turn(FunctionModel(answer), self.conversation, history, text)


class Cut:
    """A CuttingProxy in a thread of its own."""

    def __init__(self, url):
        self.proxy, self.loop = CuttingProxy(url), asyncio.new_event_loop()

    def __enter__(self):
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        return asyncio.run_coroutine_threadsafe(self.proxy.__aenter__(), self.loop).result(10)

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.proxy.__aexit__(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


if __name__ == "__main__":
    unittest.main()
