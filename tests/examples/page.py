"""The code of docs/frameworks.md, as a reader would save it."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "frameworks.md"


def code(section, language):
    """All of a section's fenced blocks in this language, as one file."""
    text = PAGE.read_text()
    (found,) = re.findall(rf"^##+ {re.escape(section)}\n(.*?)(?=^##+ |\Z)", text, re.M | re.S)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", found, re.M | re.S))
