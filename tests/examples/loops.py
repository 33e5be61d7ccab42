"""examples/python-loop and examples/typescript-loop against a hub of their own. Run by scripts/test-examples.

The hub and the loops are real; a script stands only where the model is. The program in docs/agent-loop.md is run too, and
compared with the output that the page shows.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from hub import RunningHub

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOOPS = {
    "python": [sys.executable, str(ROOT / "examples/python-loop/loop.py")],
    "typescript": [os.environ["NODE"], str(ROOT / "examples/typescript-loop/loop.ts")],
}
# Every notification of the story, in the order in which the agents read them.
STORY = [
    "files_modified[1]: notes.md",
    "files_modified[1]: src/net.py",
    "tool_fail: run_tests TimeoutError - no answer after 5 s",
    "files_modified[1]: src/main.py",
    "files_modified[1]: tests/net.py",
    "files_modified[1]: docs/index.md",
    '"!critical": budget exceeded - 51000 of 50000 tokens consumed',
    "task_done: build 17",
    "turn_summary: 4 tool.call.success",
]


def without_boundary(text):
    return re.sub(r'id="[A-Za-z0-9]{8}"', 'id="…"', text)


def items(text):
    """The notifications in a printed history, each as its text."""
    found = re.findall(r"^(?:- )?\[(?:file_watcher|tool_executor|accounting|ci)\] (.*)$", text, re.M)
    appended = re.findall(r'<notification id="[^"]*" source="[^"]*">\n?(.*?)\n?</notification>', text, re.S)
    return found or appended


def block(page, start):
    """The first fenced block of a page that begins so."""
    blocks = re.findall(r"^```\w+\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    return next(one for one in blocks if one.startswith(start))


class Loops(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.hub = RunningHub(os.environ["BELLWIRE"], 30, user="ada")
        cls.addClassCleanup(cls.hub.stop)

    def start(self, command):
        environment = {**os.environ, "BELLWIRE_URL": self.hub.url, "BELLWIRE_TOKEN": self.hub.token}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=environment, **pipes)

    def run_loop(self, command, status=0):
        process = self.start(command)
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, status, out + err)
        return out

    def test_both_languages_tell_the_same_story_in_every_style(self):
        for style in ("block", "append", "synthetic"):
            told = {}
            for language, command in LOOPS.items():
                with self.subTest(style=style, language=language):
                    told[language] = self.run_loop([*command, "--style", style])
                    self.assertEqual(items(told[language]), STORY, told[language])
            self.assertEqual(without_boundary(told["python"]), without_boundary(told["typescript"]))

    def test_after_a_crash_in_mid_turn_every_notification_is_in_the_history_once(self):
        for language, command in LOOPS.items():
            with self.subTest(language=language), tempfile.TemporaryDirectory() as folder:
                state = ["--state", str(pathlib.Path(folder, f"story-{language}.json"))]
                self.run_loop([*command, *state, "--crash"], status=1)
                history = self.run_loop([*command, *state])
                for text in STORY[:-1]:
                    self.assertEqual(history.count(text), 1, f"{text}:\n{history}")

    def test_an_idle_agent_is_woken(self):
        for language, command in LOOPS.items():
            with self.subTest(language=language):
                process = self.start([*command, "--wait"])
                try:
                    waiting = next(line for line in process.stderr if line.startswith("waiting: "))
                    event = {"type": "task.background.complete", "source": "ci", "severity": "info"}
                    event |= {"conversation_id": waiting.split()[-1], "payload": {"name": "build 18"}}
                    self.hub.ask("/v1/events", event)
                    self.assertTrue(any("task_done: build 18" in line for line in process.stdout))
                finally:
                    process.kill()
                    process.communicate()

    def test_the_program_in_the_documentation_prints_what_the_page_shows(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "first.py")
            program.write_text(block("docs/agent-loop.md", "import json, os"))
            said = self.run_loop([sys.executable, str(program)])
        self.assertEqual(without_boundary(said), without_boundary(block("docs/agent-loop.md", "--- user")))

    def test_the_readme_shows_what_the_loop_prints(self):
        shown = without_boundary(block("examples/python-loop/README.md", "--- butler: tool"))
        self.assertIn(shown, without_boundary(self.run_loop(LOOPS["python"])))


if __name__ == "__main__":
    unittest.main()
