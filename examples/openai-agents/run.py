"""An agent that backs up a vault, fails, hears of it, and tells its person: python examples/openai-agents/run.py

It needs a running hub (BELLWIRE_URL, http://127.0.0.1:2355 where it is not set) and an agent's token (BELLWIRE_TOKEN).
With OPENAI_API_KEY the SDK's default model decides what to do; without it a script plays the model's part.
"""

import asyncio
import os
import sys
import uuid

from agents import Agent, RunConfig, Runner, function_tool
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call

from bellwire import TOOLS, Context, Hub, Seen, add_news, conversation, report_failure


@function_tool(failure_error_function=report_failure)
async def back_up_vault() -> str:
    """Back up the user's vault."""
    raise TimeoutError("the vault did not answer within 5 seconds")


async def show(data: CallModelData[Context]) -> ModelInputData:
    """The filter, with a look at what the model reads last."""
    given = await add_news(data)
    last = given.input[-1]
    print(f"--- the model reads\n{last.get('output') or last.get('content')}")
    return given


def script() -> Model:
    """What a model might do."""
    warning = {"message": "Tonight's backup failed: the vault did not answer.", "type": "warning"}
    return ScriptedModel(
        [
            [function_call("back_up_vault", {}, call_id=f"call_{uuid.uuid4()}")],
            [function_call("send_notification", warning, call_id=f"call_{uuid.uuid4()}")],
            [assistant_message("The backup failed. You have a notification about it.")],
        ]
    )


async def main(url: str, token: str, scripted: bool) -> None:
    agent = Agent[Context](
        name="Butler",
        instructions="You look after the user's vault. If something goes wrong, send the user a notification.",
        tools=[back_up_vault, *TOOLS],
        model=script() if scripted else None,
    )
    config = RunConfig(call_model_input_filter=show, tracing_disabled=scripted)
    async with Hub(url, token) as hub:
        context = conversation(hub, "ada", "backup", correlation_id=str(uuid.uuid4()))
        result = await Runner.run(agent, "Back up my vault.", context=context, hooks=Seen(), run_config=config)
    print(f"--- it says\n{result.final_output}")


if __name__ == "__main__":
    if "BELLWIRE_TOKEN" not in os.environ:
        sys.exit("BELLWIRE_TOKEN is not set: bellwire token create --scope agent --user ada --origin butler makes one")
    address = os.environ.get("BELLWIRE_URL", "http://127.0.0.1:2355")
    asyncio.run(main(address, os.environ["BELLWIRE_TOKEN"], scripted="OPENAI_API_KEY" not in os.environ))
