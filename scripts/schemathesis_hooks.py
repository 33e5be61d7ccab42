"""What the fuzzer of scripts/schemathesis has to be told: how a list is written as NDJSON, and what cannot be sent at all."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def ndjson(context, value):
    lines = value if isinstance(value, list) else [value]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@schemathesis.hook
def filter_headers(context, headers):
    """The fuzzer's own client fails on characters that a header cannot carry; they never reach the hub."""
    texts = [text for pair in (headers or {}).items() for text in pair if isinstance(text, str)]
    return all(ord(character) < 256 for text in texts for character in text)
