"""examples/openai-agents against a hub of its own, with the SDK's scripted model. Run by scripts/test-examples.

The hub, the SDK and the example are real; a fake stands only where the model is.
"""

import asyncio
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import uuid

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from hub import CuttingProxy, RunningHub

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "openai-agents"
sys.path.insert(0, str(EXAMPLE))
from bellwire import TOOLS, Hub, Seen, add_news, conversation, report_failure

PER_HOUR = 2


@function_tool(failure_error_function=report_failure)
async def back_up_vault() -> str:
    """Back up the user's vault."""
    raise TimeoutError("the vault did not answer")


@function_tool
async def look() -> str:
    """Look around."""
    return "Nothing to see."


def call(tool, **arguments):
    return [function_call(tool, arguments, call_id=f"call_{uuid.uuid4()}")]


def said(text="Done."):
    return [assistant_message(text)]


def texts(model):
    """Every text of every input the model was given."""
    return [[str(item.get("output") or item.get("content")) for item in one.input] for one in model.calls]


def results(model):
    """What the tools answered, as the model last read it."""
    outputs = [item["output"] for item in model.calls[-1].input if item.get("type") == "function_call_output"]
    return [json.loads(output.split("\n\n")[0]) for output in outputs]


class TheExample(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.running = RunningHub(os.environ["BELLWIRE"], PER_HOUR)
        cls.addClassCleanup(cls.running.stop)

    async def asyncSetUp(self):
        self.hub = Hub(self.running.url, self.running.token)
        self.addAsyncCleanup(self.hub.__aexit__)
        self.config = RunConfig(call_model_input_filter=add_news, tracing_disabled=True)

    def context(self, user_id, correlation_id="trace-1"):
        """A new conversation of this person."""
        return conversation(self.hub, user_id, f"{user_id}-{uuid.uuid4()}", correlation_id)

    async def play(self, model, context, words="Go on."):
        agent = Agent(name="Butler", instructions="You are a butler.", tools=[back_up_vault, look, *TOOLS], model=model)
        result = await Runner.run(agent, words, context=context, hooks=Seen(), run_config=self.config)
        model.assert_complete()
        return result

    async def test_the_person_has_the_notification_with_its_origin_conversation_and_thread(self):
        context = self.context("ann", correlation_id="trace-ann")
        model = ScriptedModel([call("send_notification", message="Renew the passport", type="reminder"), said()])
        await self.play(model, context)
        (item,) = self.running.inbox("ann")
        self.assertEqual(results(model), [{
            "success": True, "action": "notification_created", "message": "Notification created: Renew the passport",
            "notification_id": item["id"], "type": "reminder",
        }])
        told = {name: item[name] for name in ("message", "type", "origin", "conversation_id", "correlation_id")}
        self.assertEqual(told, {
            "message": "Renew the passport", "type": "reminder", "origin": "butler",
            "conversation_id": context["conversation_id"], "correlation_id": "trace-ann",
        })
        self.assertEqual(self.running.inbox("somebody-else"), [])

    async def test_toasts_and_reminders_reach_the_person_too(self):
        logs = {"label": "View Logs", "action": "prompt", "prompt": "show me the logs"}
        toast = call("show_notification", message="Build failed", severity="error", title="CI", actions=[logs])
        model = ScriptedModel([toast, call("remind", message="Look at the build", in_minutes=30), said()])
        await self.play(model, self.context("tove"))
        shown, kept = results(model)
        self.assertEqual((shown["success"], shown["notification"]["actions"]), (True, [logs]))
        (item,) = self.running.inbox("tove")
        self.assertEqual((item["kind"], item["title"], item["actions"][0]["label"]), ("toast", "CI", "View Logs"))
        reminders = [one for one in self.running.ask("/v1/reminders")["items"] if one["user_id"] == "tove"]
        self.assertEqual([one["id"] for one in reminders], [kept["reminder_id"]])

    async def test_a_failing_tool_is_news_behind_its_own_error(self):
        context = self.context("bea")
        model = ScriptedModel([call("back_up_vault"), said()])
        await self.play(model, context)
        boundary = self.running.ask(f"/v1/conversations/{context['conversation_id']}")["boundary"]
        self.assertEqual(texts(model)[-1][-1], (
            "The tool failed: TimeoutError: the vault did not answer\n\n"
            f'<notifications id="{boundary}" count="1" showing="1">\n'
            "- [tool_executor] tool_fail: back_up_vault TimeoutError - the vault did not answer\n</notifications>"
        ))
        for one in model.calls:
            self.assertTrue(one.system_instructions.startswith("You are a butler.\n\n"), one.system_instructions)
            self.assertIn(boundary, one.system_instructions)

    async def test_refusals_come_back_as_results_and_use_no_slot(self):
        refused = [{"message": " "}, {"message": "x" * 501}, {"message": "x", "type": "urgent"}]
        model = ScriptedModel([*(call("send_notification", **one) for one in refused), said()])
        await self.play(model, self.context("cleo"))
        length = "Message must be between 1 and 500 characters"
        kind = "Invalid type 'urgent'. Must be one of: reminder, info, warning"
        wrong = [{"success": False, "action": "validation_error", "message": text} for text in (length, length, kind)]
        self.assertEqual(results(model), wrong)
        model = ScriptedModel([*(call("send_notification", message=f"Fact {n}") for n in range(PER_HOUR + 1)), said()])
        await self.play(model, self.context("cleo"))
        *sent, limited = results(model)
        self.assertEqual([one["action"] for one in sent], ["notification_created"] * PER_HOUR)
        self.assertTrue(0 < limited.pop("retry_after_seconds") <= 3600)
        message = "Notification rate limit exceeded. Try again later."
        self.assertEqual(limited, {"success": False, "action": "rate_limited", "message": message})
        self.assertEqual(len(self.running.inbox("cleo")), PER_HOUR)

    async def test_news_stands_once_in_every_later_input_and_where_it_was(self):
        context = self.context("dora")
        conversation_id = context["conversation_id"]
        await self.play(ScriptedModel([said()]), context)
        self.running.publish(conversation_id, "at_start")

        def meanwhile(_):
            self.running.publish(conversation_id, "meanwhile")
            return call("send_notification", message="One")

        model = ScriptedModel([call("look"), {"responder": meanwhile}, call("look"), said()])
        first = await self.play(model, context)
        model_later = ScriptedModel([call("look"), said()])
        await self.play(model_later, context, first.to_input_list() + [{"role": "user", "content": "And now?"}])
        inputs = texts(model) + texts(model_later)
        for index, given in enumerate(inputs):
            whole = "\n".join(given)
            self.assertEqual(whole.count("at_start"), 1, f"call {index}: {whole}")
            self.assertEqual(whole.count("meanwhile"), 0 if index < 2 else 1, f"call {index}: {whole}")
        for earlier, later in itertools.pairwise(inputs):
            self.assertEqual(later[: len(earlier)], earlier, "what a model has read never changes")
        self.assertEqual(len(self.running.shown(conversation_id)), 2)

    async def test_news_of_a_model_call_that_failed_is_given_to_the_next_once(self):
        context = self.context("elsa")
        conversation_id = context["conversation_id"]
        model = ScriptedModel([said(), RuntimeError("the model is overloaded"), call("look"), said()])
        agent = Agent(name="Butler", tools=[look], model=model)

        async def run():
            return await Runner.run(agent, "Go on.", context=context, hooks=Seen(), run_config=self.config)

        await run()
        self.running.publish(conversation_id, "early")
        with self.assertRaisesRegex(RuntimeError, "overloaded"):
            await run()
        self.running.publish(conversation_id, "late")
        await run()
        model.assert_complete()
        blocks = [text for text in texts(model)[-1] if text.startswith("<notifications ")]
        self.assertEqual(len(blocks), 1, "both in one block: the first was taken back")
        self.assertEqual((blocks[0].count("early"), blocks[0].count("late")), (1, 1), blocks)
        self.assertEqual("".join(self.running.shown(conversation_id)).count("early"), 1)

    async def test_news_that_a_lost_tool_result_brought_is_given_again(self):
        context = self.context("fay")
        conversation_id = context["conversation_id"]

        def meanwhile(_):
            self.running.publish(conversation_id, "meanwhile")
            return call("send_notification", message="One")

        model = ScriptedModel([{"responder": meanwhile}, RuntimeError("the model is overloaded")])
        with self.assertRaisesRegex(RuntimeError, "overloaded"):
            await self.play(model, context)
        self.assertEqual("\n".join(texts(model)[-1]).count("meanwhile"), 1)
        again = ScriptedModel([said()])
        await self.play(again, context)
        self.assertEqual("\n".join(texts(again)[-1]).count("meanwhile"), 1, texts(again))

    async def test_an_answer_that_is_cut_off_loses_nothing_and_does_nothing_twice(self):
        async with CuttingProxy(self.running.url) as proxy, Hub(proxy.url, self.running.token) as hub:
            context = self.context("gwen") | {"hub": hub}
            await self.play(ScriptedModel([said()]), context)
            # Asked again, the hub gives the same answer.
            proxy.cut("/send_notification", times=1)
            model = ScriptedModel([call("send_notification", message="One"), said()])
            await self.play(model, context)
            self.assertEqual([one["notification_id"] for one in results(model)], [self.running.inbox("gwen")[0]["id"]])
            self.assertEqual(len(self.running.inbox("gwen")), 1)
            # Where no answer comes at all, the next model call brings what this one should have.
            self.running.publish(context["conversation_id"], "early")
            proxy.cut("/inject", times=2)
            model = ScriptedModel([call("look"), said()])
            with self.assertLogs("bellwire", "WARNING"):
                await self.play(model, context)
            self.assertEqual(proxy.times, 0)
            without, with_news = ("\n".join(one) for one in texts(model))
            self.assertEqual((without.count("early"), with_news.count("early")), (0, 1), texts(model))

    async def test_without_a_hub_the_agent_works_on_and_its_tools_say_so(self):
        context = self.context("hana")
        model = ScriptedModel([call("send_notification", message="One"), call("back_up_vault"), said()])
        async with Hub("http://127.0.0.1:1", "none") as nobody:
            with self.assertLogs("bellwire", "WARNING"):
                result = await self.play(model, context | {"hub": nobody})
        self.assertEqual(result.final_output, "Done.")
        answer = json.loads(texts(model)[1][-1])
        self.assertEqual((answer["success"], answer["action"]), (False, "error"))
        self.assertRegex(answer["message"], "^Failed to create notification: ")

    async def test_a_streamed_run_hears_the_same(self):
        context = self.context("iris")
        model = ScriptedModel([call("back_up_vault"), call("look"), said()])
        agent = Agent(name="Butler", tools=[back_up_vault, look], model=model)
        streamed = Runner.run_streamed(agent, "Go on.", context=context, hooks=Seen(), run_config=self.config)
        async for _ in streamed.stream_events():
            pass
        model.assert_complete()
        self.assertEqual(["\n".join(one).count("<notifications ") for one in texts(model)], [0, 1, 1])
        self.assertEqual((context["told"].given, context["told"].lost), (set(), set()))

    async def test_parallel_conversations_do_not_mix(self):
        people = [f"twin{number}" for number in range(8)]

        async def one(user_id):
            context = self.context(user_id, correlation_id=f"trace-{user_id}")
            model = ScriptedModel([
                call("back_up_vault"), call("send_notification", message=f"For {user_id}"), call("look"), said(),
            ])
            # Before the first point: the conversation is not known yet.
            await self.play(ScriptedModel([said()]), context)
            await asyncio.to_thread(self.running.publish, context["conversation_id"], f"tool_of_{user_id}")
            await self.play(model, context)
            return user_id, context["conversation_id"], model

        for user_id, conversation_id, model in await asyncio.gather(*map(one, people)):
            whole = "\n".join(texts(model)[-1])
            self.assertEqual([name for name in people if f"tool_of_{name} " in whole], [user_id], whole)
            self.assertEqual(whole.count("tool_fail: back_up_vault"), 1, whole)
            (item,) = self.running.inbox(user_id)
            told = (item["message"], item["conversation_id"], item["correlation_id"])
            self.assertEqual(told, (f"For {user_id}", conversation_id, f"trace-{user_id}"))

    async def test_the_program_prints_what_its_readme_shows(self):
        environment = {"BELLWIRE_URL": self.running.url, "BELLWIRE_TOKEN": self.running.token}
        run = [sys.executable, EXAMPLE / "run.py"]
        printed = await asyncio.to_thread(subprocess.check_output, run, env=environment, text=True, timeout=60)
        shown = (EXAMPLE / "README.md").read_text().split("```text\n")[1].split("```")[0]
        varying = r'id="\w+"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
        self.assertEqual(*(re.sub(varying, "ID", one) for one in (printed, shown)))
        self.assertEqual([item["conversation_id"] for item in self.running.inbox("ada")].count("backup"), 1)


if __name__ == "__main__":
    unittest.main()
