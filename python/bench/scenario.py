"""The work that all agents of ``frameworks.py`` do: a user with six questions about one failure.

For each question the model reads CALLS files and answers. In one turn the process stops while a tool runs;
the user asks the next question afterwards. The model accepts WINDOW tokens, and agents keep to BUDGET,
because the provider also counts names, ids and arguments. ``node/bench/frameworks.mjs`` has the same work.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 12
WINDOW = 12_000
BUDGET = 8_000
TARGET = 4_800
KEPT_MESSAGES = 20
"""Messages that means keep that count messages: about as many as fit the budget."""
INSTRUCTIONS = "You look for the cause of failures. Read files until you have found it."
QUESTIONS = [
    "Why does the checkout fail?",
    "Does it also fail for logged-in users?",
    "Since which release?",
    "Which service is slow?",
    "What did it log in June?",
    "What should we change?",
]
INTERRUPTED = (2, 5)
"""The turn, from 0, and the call in it, from 1, that is interrupted."""


class Interrupted(Exception):
    """The process stops here. The next turn goes on with what was stored."""


class Provider:
    """The scripted provider, for one run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.base_url = f"{url}/v1"

    def get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/{path}") as response:
            return json.load(response)


class Scenario:
    """The work of one agent, and its figures."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._turn = -1
        self._calls = 0
        self._results = 0
        self._answered = 0
        self._seconds = 0.0

    def read(self, path: str) -> str:
        """The tool of the agent."""
        self._calls += 1
        if (self._turn, self._calls) == INTERRUPTED:
            raise Interrupted(path)
        self._results += 1
        return "\n".join(
            f"2026-06-{at:02} 14:{(at * 7 + self._results) % 60:02}:31 WARN {path}: request "
            f"{self._results * 1000 + at} to payments took {at * 137 % 900} ms, retry {at % 4}"
            for at in range(1, 13)
        )

    def ask(self, turn: Callable[[str], object], refusal: type[BaseException]) -> None:
        """Asks all questions. ``turn`` asks one, and raises ``refusal`` if the provider refuses a request."""
        for self._turn, question in enumerate(QUESTIONS):
            self.provider.get("turn")
            self._calls = 0
            begin = time.process_time()
            try:
                turn(question)
                self._answered += 1
            except (refusal, Interrupted):
                pass
            self._seconds += time.process_time() - begin

    def row(self, left: int, folder: Path) -> dict[str, Any]:
        """The figures: ``left`` messages are still in the history, ``folder`` has all that was stored."""
        figures = self.provider.get("figures")
        return {
            **figures,
            "answered": self._answered,
            "questions": len(QUESTIONS),
            "left": left,
            "made": len(QUESTIONS) + figures["accepted"] + self._results,
            "bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
            "seconds": self._seconds,
        }
