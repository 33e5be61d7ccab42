"""Bellwire for an agent of the OpenAI Agents SDK: tools that reach its person, and news that reaches its model.

Copy this file. Give the agent `TOOLS`, and every run a context made by `conversation`, the hooks `Seen` and the filter
`add_news`; `report_failure` makes an event of a tool of yours that fails. run.py shows all of it at work.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict, cast
from urllib.parse import quote

import httpx2
from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, TResponseInputItem, function_tool
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

UNSEEN_MAX = 20  # How many calls one request may take back.
log = logging.getLogger("bellwire")


class Context(TypedDict):
    """What a run knows and its model has no say in."""

    user_id: str
    conversation_id: str
    correlation_id: str
    hub: Hub
    told: Told


def conversation(hub: Hub, user_id: str, conversation_id: str, correlation_id: str) -> Context:
    """The context of a conversation's runs. Keep it as long as the conversation's history."""
    return Context(
        user_id=user_id, conversation_id=conversation_id, correlation_id=correlation_id, hub=hub, told=Told()
    )


class Hub:
    """A running hub, asked with an agent's token."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=10)

    async def __aenter__(self) -> Hub:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, context: Context, method: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"X-Correlation-Id": context["correlation_id"]}
        request = self._http.build_request(method, path, json=body, headers=headers)
        try:
            response = await self._http.send(request)
        except httpx2.TransportError:
            # Everything asked here has a name of its own, and asking twice gives the same answer.
            response = await self._http.send(request)
        if response.is_error:
            # The body says what to correct; the status alone does not.
            raise httpx2.HTTPStatusError(response.text, request=response.request, response=response)
        answer: dict[str, Any] = response.json()
        return answer


# Tools: the agent speaks to its person.


@function_tool
async def send_notification(ctx: ToolContext[Context], message: str, type: str = "info") -> str:
    """Send a notification to the user. Use this when the user asks to be reminded about something, when you identify
    information worth flagging for later, or when you want to surface a warning. Notifications persist beyond the
    current conversation and can be delivered via email if the user has opted in.

    Args:
        message: The notification message (1-500 characters).
        type: Notification type: "reminder", "info", or "warning".
    """
    return await call_tool(ctx, "create notification", {"message": message, "type": type})


@dataclass
class Button:
    """A button: `dismiss` closes the toast, `prompt` says its prompt to you."""

    label: str
    action: str
    prompt: str | None = None


@function_tool
async def show_notification(
    ctx: ToolContext[Context],
    message: str,
    severity: str,
    title: str | None = None,
    actions: list[Button] | None = None,
) -> str:
    """Show a toast to the user right now; it stays in the inbox with the same buttons. Say in the chat that you do.

    Args:
        message: What it says, best under 100 characters.
        severity: "info", "success", "warning", or "error".
        title: What stands above the message.
        actions: At most three buttons.
    """
    buttons = [said(asdict(button)) for button in actions or []]
    arguments = {"message": message, "severity": severity, "title": title, "actions": buttons or None}
    return await call_tool(ctx, "show notification", arguments)


@function_tool
async def remind(ctx: ToolContext[Context], message: str, at: str | None = None, in_minutes: int | None = None) -> str:
    """Remind the user of something at a later time. Give exactly one of `at` and `in_minutes`.

    Args:
        message: What to remind of (1-500 characters).
        at: When, in RFC 3339 with the user's offset, such as 2027-01-04T09:00:00+01:00.
        in_minutes: In how many minutes.
    """
    return await call_tool(ctx, "keep the reminder", {"message": message, "at": at, "in_minutes": in_minutes})


TOOLS = [send_notification, show_notification, remind]


async def call_tool(ctx: ToolContext[Context], purpose: str, arguments: dict[str, Any]) -> str:
    """Calls the hub's tool of the same name; its answer, also a refusal, is the model's to read."""
    context = ctx.context
    body = {
        "arguments": said(arguments),
        "context": {
            "user_id": context["user_id"],
            "conversation_id": context["conversation_id"],
            "correlation_id": context["correlation_id"],
            # A call that the SDK repeats happens once. It is also the name under which the result brings news.
            "idempotency_key": ctx.tool_call_id,
        },
    }
    try:
        result = await context["hub"].ask(context, "POST", f"/v1/tools/{ctx.tool_name}", body)
    except httpx2.HTTPError as error:
        context["told"].lost.add(ctx.tool_call_id)
        return json.dumps({"success": False, "action": "error", "message": f"Failed to {purpose}: {error!r}"})
    news = result.pop("notifications", "")
    if result.pop("call_id", None):
        context["told"].given.add(ctx.tool_call_id)
    return behind(json.dumps(result, ensure_ascii=False), news)


def said(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the model has said something about."""
    return {name: value for name, value in arguments.items() if value is not None}


# News: what happens meanwhile reaches the model.


@dataclass(frozen=True)
class Block:
    """News that the model was given, and the item of the input behind which it stands."""

    call_id: str
    mark: str
    text: str


@dataclass
class Told:
    """What the model of a conversation was told. The SDK forgets what a filter adds, so every call is given it again."""

    system_prompt: str = ""
    blocks: list[Block] = field(default_factory=list)
    # Calls that took news since the model last answered: it has not seen them yet.
    given: set[str] = field(default_factory=set)
    # Calls that took news the model will never see. The hub is told, and gives it out again.
    lost: set[str] = field(default_factory=set)


async def add_news(data: CallModelData[Context]) -> ModelInputData:
    """For `RunConfig.call_model_input_filter`: puts the news behind the last tool's result, or behind the user's words."""
    assert data.context is not None, "Runner.run needs the context that conversation() makes"
    context, items = data.context, data.model_data.input
    forget_unseen(context["told"], items)
    try:
        await take_news(context, items)
    except httpx2.HTTPError as error:
        log.warning("The model goes without news: %r", error)
    told = context["told"]
    instructions = behind(data.model_data.instructions or "", told.system_prompt) or None
    return ModelInputData(input=with_blocks(items, told.blocks), instructions=instructions)


class Seen(RunHooks[Context]):
    """For `hooks` of `Runner.run`: a model that has answered has seen what it was given."""

    async def on_llm_end(
        self, context: RunContextWrapper[Context], agent: Agent[Context], response: ModelResponse
    ) -> None:
        context.context["told"].given.clear()


async def report_failure(ctx: RunContextWrapper[Context], error: Exception) -> str:
    """For `failure_error_function` of a tool: makes an event of the failure, and the result that the model reads."""
    assert isinstance(ctx, ToolContext), "the SDK calls this in a tool's own context"
    context: Context = ctx.context
    event = {
        "id": f"{context['conversation_id']}/{ctx.tool_call_id}",
        "type": "tool.call.failure",
        "source": "tool_executor",
        "severity": "error",
        "conversation_id": context["conversation_id"],
        "correlation_id": context["correlation_id"],
        "payload": {"tool_name": ctx.tool_name, "error_type": type(error).__name__, "error_message": str(error)},
    }
    try:
        await context["hub"].ask(context, "POST", "/v1/events", event)
    except httpx2.HTTPError as refusal:
        log.warning("Nobody hears of the failure: %r", refusal)
    return f"The tool failed: {type(error).__name__}: {error}"


def forget_unseen(told: Told, items: list[TResponseInputItem]) -> None:
    """What was given and not answered is lost with its call, unless it is in the history as a tool's result."""
    unseen = told.given - {mark(index, item) for index, item in enumerate(items)}
    told.given -= unseen
    told.lost |= unseen
    told.blocks = [block for block in told.blocks if block.call_id not in unseen]


async def take_news(context: Context, items: list[TResponseInputItem]) -> None:
    """Asks the hub for what waits, under a name for this very model call."""
    told, hub = context["told"], context["hub"]
    path = f"/v1/conversations/{quote(context['conversation_id'], safe='')}"
    if not told.system_prompt:
        await hub.ask(context, "PUT", path, {"user_id": context["user_id"]})
        told.system_prompt = (await hub.ask(context, "GET", f"{path}/system_prompt"))["system_prompt"]
    point = "after_tool" if items[-1].get("type") == "function_call_output" else "turn_start"
    call_id, unseen = str(uuid.uuid4()), sorted(told.lost)[:UNSEEN_MAX]
    told.lost.add(call_id)  # Until its answer has come.
    answer = await hub.ask(context, "POST", f"{path}/inject", {"point": point, "call_id": call_id, "unseen": unseen})
    told.lost -= {call_id, *unseen}
    told.given.add(call_id)
    if answer["block"]:
        told.blocks.append(Block(call_id, mark(len(items) - 1, items[-1]), answer["block"]))


def mark(index: int, item: TResponseInputItem) -> str:
    """What an item is known by in later calls: a tool's result by its call, a message by its place and words."""
    if item.get("type") == "function_call_output":
        return str(item.get("call_id"))
    return f"{index} {json.dumps(item, sort_keys=True, default=str)}"


def with_blocks(items: list[TResponseInputItem], blocks: list[Block]) -> list[TResponseInputItem]:
    """The items with every block at its place: errors of tools carry news exactly like successes."""
    told: list[TResponseInputItem] = []
    for index, item in enumerate(items):
        news = "\n\n".join(block.text for block in blocks if block.mark == mark(index, item))
        output = item.get("output") if item.get("type") == "function_call_output" else None
        if news and isinstance(output, str):
            told.append(cast(TResponseInputItem, {**item, "output": behind(output, news)}))
        elif news:
            told += [item, {"role": "user", "content": news}]
        else:
            told.append(item)
    return told


def behind(text: str, news: str) -> str:
    """The text, a blank line, and the news, where there is any."""
    return "\n\n".join(part for part in (text, news) if part)
