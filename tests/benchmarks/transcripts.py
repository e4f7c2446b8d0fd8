"""What real agents did, read from their own session files: turns, and the tool calls in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

SOURCES = ("claude-code/**/*.jsonl", "codex/*.jsonl")


class Call(Struct, frozen=True):
    """One tool call that was answered."""

    thread: str
    """The agent that made it: `main`, or the id of a sub-agent."""
    id: str
    tool: str
    input: Any
    output: Any


Event = Call | None
"""None: a turn begins, as a person said something."""

_CORPUS = Path("shared") / "corpus"
_GLUED = re.compile(rb"(?<=\})(?=\{\")")
_decode = msgspec.json.Decoder().decode


def sessions(checkout: Path) -> dict[str, list[Event]]:
    """Return the sessions of the corpus beside the checkout; none where it is not there."""
    corpus = checkout.parent / _CORPUS
    paths = sorted({path for pattern in SOURCES for path in corpus.glob(pattern)})
    found = {str(path.relative_to(corpus)): list(_events(path)) for path in paths}
    return {name: events for name, events in found.items() if any(events)}


def _events(path: Path) -> Iterator[Event]:
    waiting: dict[str, tuple[str, str, Any]] = {}
    for line in _lines(path):
        for part in _codex(line) if "payload" in line else _claude(line):
            match part:
                case None:
                    yield None
                case (str(identity), str(thread), str(tool), said):
                    waiting[identity] = (thread, tool, said)
                case (str(identity), output) if identity in waiting:
                    yield Call(waiting[identity][0], identity, *waiting.pop(identity)[1:], output)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        for piece in _GLUED.split(line) if b'}{"' in line else [line]:
            try:
                value = _decode(piece)
            except ValueError:  # two lines glued in the middle of one: the writer's own damage
                continue
            if isinstance(value, dict):
                yield value


def _claude(line: dict[str, Any]) -> Iterator[tuple[Any, ...] | None]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str) and line.get("type") == "user":
        yield None
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "tool_use", "id": str(identity), "name": str(tool), "input": said}:
                yield identity, str(line.get("agentId", "main")), tool, said
            case {"type": "tool_result", "tool_use_id": str(identity), "content": output}:
                yield identity, output
            case _:
                pass


def _codex(line: dict[str, Any]) -> Iterator[tuple[Any, ...] | None]:
    match line["payload"]:
        case {"type": "user_message"}:
            yield None
        case {"type": "function_call", "call_id": identity, "name": tool, "arguments": said}:
            yield identity, "main", tool, said
        case {"type": "custom_tool_call", "call_id": identity, "name": tool, "input": said}:
            yield identity, "main", tool, said
        case {
            "type": "function_call_output" | "custom_tool_call_output",
            "call_id": identity,
            "output": output,
        }:
            yield identity, output
        case _:
            return
