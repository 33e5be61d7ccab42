"""The official Python client, in both eras of the protocol, over HTTP and over stdio: it calls every tool with the
example of its own description, and hears that something waits. Run by scripts/test-mcp."""

import asyncio
import json
import os
import urllib.request

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

URL = os.environ["BELLWIRE_URL"]
HEADERS = {"Authorization": "Bearer " + os.environ["BELLWIRE_TOKEN"]}
NEWEST = "2026-07-28"


def publish(tool):
    event = {
        "type": "tool.call.failure", "source": "ci", "severity": "error", "conversation_id": "chat",
        "payload": {"tool_name": tool},
    }
    headers = HEADERS | {"Content-Type": "application/json"}
    request = urllib.request.Request(URL + "/v1/events", json.dumps(event).encode(), headers)
    urllib.request.urlopen(request, timeout=10).read()


def checked(result):
    assert json.loads(result.content[0].text) == result.structured_content, result
    return result.structured_content


async def meet(name, client, version):
    async with client:
        assert client.protocol_version == version, client.protocol_version
        tools = (await client.list_tools()).tools
        assert len(tools) >= 2
        for tool in tools:
            assert tool.output_schema["type"] == "object"
            example = json.loads(tool.description.split("Example: ")[-1])
            answer = checked(await client.call_tool(tool.name, example))
            if tool.name == "notify":  # This hub has no channel, and says so.
                assert answer["status"] == "error" and answer["error_class"] == "validation_error", answer
            else:
                assert answer["success"] is True, (tool.name, answer)
        publish(name)
        answer = checked(await client.call_tool("check_notifications", {}))
        assert name in answer["notifications"], answer
        refused = await client.call_tool("notify_self", {"message": ""})
        assert refused.is_error and checked(refused)["action"] == "validation_error", refused
    print(f"ok  {name} ({version}): {', '.join(tool.name for tool in tools)}")


def over_http(**options):
    http = create_mcp_http_client(headers=HEADERS)
    return Client(streamable_http_client(URL + "/mcp", http_client=http), **options)


async def main():
    stdio = StdioServerParameters(
        command=os.environ["BELLWIRE"],
        args=["mcp", "--conversation", "chat"],
        env={name: os.environ[name] for name in ("BELLWIRE_URL", "BELLWIRE_TOKEN", "HOME", "PATH")},
    )
    await meet("python-http", over_http(), NEWEST)
    await meet("python-http-older", over_http(mode="legacy"), "2025-11-25")
    await meet("python-stdio", Client(stdio), NEWEST)


asyncio.run(asyncio.wait_for(main(), 60))
