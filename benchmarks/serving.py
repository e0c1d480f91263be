"""Processes that time one side each: they answer lines of JSON."""

import json
import subprocess
from typing import Any


class AnsweringProcess:
    """A process that reads a question from each line, and answers by a line."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None):
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def answer(self, *question: Any) -> Any:
        """Return the answer to a question; RuntimeError if the process has ended."""
        stdin, answers = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert answers is not None
        stdin.write(json.dumps(question) + "\n")
        stdin.flush()
        line = answers.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} has ended")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()
