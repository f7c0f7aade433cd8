"""Writes src/sm/providers/codex/app/schema.py: what `sm` sends to Codex's app-server and reads of it, as types.

They come from the schema that the pinned client writes itself, so a member that is gone there, or has another type,
shows as a difference: `.venv/bin/python scripts/codex_schema.py` after a change of the client or of the tables here. A
test compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ROOT / "src" / "sm" / "providers" / "codex" / "app" / "schema.py"
BIN = ROOT / "clients" / "codex" / "node_modules" / ".bin"
FILE = "codex_app_server_protocol.schemas.json"
PREFIX = "#/definitions/"
REQUESTS = {
    "initialize": "capabilities clientInfo",
    "thread/start": "approvalPolicy approvalsReviewer cwd model sandbox serviceName sessionStartSource",
    "thread/loaded/list": "cursor",
    "thread/name/set": "name threadId",
    "thread/read": "threadId",
    "thread/resume": "excludeTurns threadId",
    "thread/unsubscribe": "threadId",
    "thread/compact/start": "threadId",
    "thread/goal/get": "threadId",
    "thread/goal/set": "objective status threadId tokenBudget",
    "thread/inject_items": "items threadId",
    "turn/start": "effort input sandboxPolicy threadId",
    "turn/interrupt": "threadId turnId",
}
"""Requests that we send, by method, with the members that we give."""
RESULTS = {
    "thread/start": "approvalPolicy approvalsReviewer model reasoningEffort sandbox thread",
    "thread/resume": "approvalPolicy approvalsReviewer model reasoningEffort sandbox thread",
    "thread/goal/get": "goal",
    "thread/loaded/list": "data nextCursor",
    "thread/read": "thread",
}
"""What we read of their results; nothing of any other."""
NOTIFICATIONS = {
    "account/rateLimits/updated": "rateLimits",
    "item/completed": "item threadId turnId",
    "item/started": "item threadId turnId",
    "serverRequest/resolved": "requestId",
    "thread/settings/updated": "threadId threadSettings",
    "thread/started": "thread",
    "thread/status/changed": "status threadId",
    "thread/tokenUsage/updated": "threadId tokenUsage",
    "turn/completed": "threadId turn",
    "turn/started": "threadId turn",
}
ASKED = {
    "item/commandExecution/requestApproval": "approvalId availableDecisions command cwd itemId reason threadId",
    "item/fileChange/requestApproval": "itemId reason threadId",
    "item/permissions/requestApproval": "cwd itemId permissions reason threadId",
    "item/tool/requestUserInput": "itemId questions threadId",
    "mcpServer/elicitation/request": "message mode requestedSchema serverName threadId",
}
"""What the server asks of us."""
REPLIES = {
    "item/commandExecution/requestApproval": "decision",
    "item/fileChange/requestApproval": "decision",
    "item/permissions/requestApproval": "permissions scope",
    "item/tool/requestUserInput": "answers",
    "mcpServer/elicitation/request": "action content",
}
SENT_PARTS = {
    "ClientInfo": "name title version",
    "InitializeCapabilities": "experimentalApi optOutNotificationMethods",
    "ToolRequestUserInputAnswer": "answers",
}
"""Types inside of what we send."""
READ_PARTS = {
    "FileUpdateChange": "diff kind path",
    "RateLimitSnapshot": "primary secondary",
    "RateLimitWindow": "resetsAt usedPercent windowDurationMins",
    "Thread": "agentRole ephemeral id originator parentThreadId path status",
    "ThreadGoal": "objective status tokenBudget",
    "ThreadItem": "aggregatedOutput changes content id server status text tool type",
    "ThreadSettings": "approvalPolicy approvalsReviewer effort model sandboxPolicy",
    "ThreadStatus": "activeFlags type",
    "ThreadTokenUsage": "last modelContextWindow",
    "TokenUsageBreakdown": "inputTokens",
    "ToolRequestUserInputOption": "description label",
    "ToolRequestUserInputQuestion": "id options question",
    "Turn": "error id status",
    "TurnError": "codexErrorInfo message",
    "UserInput": "text type",
}
"""Types inside of what we read. A union is one type with the members of all its parts."""
PASSED_ON = frozenset({"kind", "permissions"})
"""What we only pass on, as it came."""
VARIANTS = {
    "ThreadItem": "userMessage agentMessage commandExecution fileChange mcpToolCall dynamicToolCall webSearch "
    "imageView contextCompaction",
    "UserInput": "text",
    "ThreadStatus": "active idle notLoaded systemError",
}
"""Of a union the parts that are read, by the member `type`."""
HEAD = '''\
"""What is sent to Codex's app-server and read of it ({version}): its own types, with the members that are used.

Generated from the schema of the installed client by `scripts/codex_schema.py`; edit the tables there. Below a member
are the words that it may hold. What is read has a default for each member, since another version may leave it out.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

Result = TypeVar("Result", bound=msgspec.Struct)


class FromServer(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says; it decodes from an object that has other members as well."""


class ToServer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Part of what is sent; None is left out."""


class AppRequest(msgspec.Struct, Generic[Result], frozen=True, rename="camel", omit_defaults=True):
    """What the server is asked for; None is left out."""

    method: ClassVar[str]
    result: ClassVar[type[msgspec.Struct]]


class Nothing(FromServer, frozen=True):
    """Of the result nothing is read."""
'''
PRIMITIVES = {
    "string": ("str", '""'),
    "integer": ("int", "0"),
    "number": ("float", "0.0"),
    "boolean": ("bool", "False"),
}
ANY = ("Any", "None")


class UnknownError(Exception):
    """The schema has no such method, type or member; the message names it."""


@dataclass(frozen=True)
class Member:
    type: str
    default: str
    words: tuple[str, ...] = ()
    """Of an enumeration, in their order."""

    def or_none(self) -> Member:
        return self if self.type.endswith(("Any", " | None")) else Member(f"{self.type} | None", "None", self.words)


@dataclass
class Schema:
    definitions: dict[str, Any]
    made: dict[str, str] = field(default_factory=dict)
    """Text of each class by its name, those that others need first."""

    def definition(self, reference: str) -> tuple[str, Any]:
        """Return the name and the content of a type."""
        found: Any = self.definitions
        for part in reference.removeprefix(PREFIX).split("/"):
            found = found.get(part)
            if found is None:
                raise UnknownError(f"the schema has no type {reference}")
        return reference.rpartition("/")[2], found

    def named(self, name: str) -> Any:  # noqa: ANN401  # JSON
        return self.definitions.get(name) or self.definition(f"v2/{name}")[1]

    def parameters(self, union: str, method: str) -> str:
        """Return the name of the type of a method's params."""
        for variant in self.named(union)["oneOf"]:
            members = variant["properties"]
            if members["method"]["enum"] == [method]:
                return str(members["params"]["$ref"]).rpartition("/")[2]
        raise UnknownError(f"{union} has no method {method}")

    def members(self, name: str) -> tuple[dict[str, list[Any]], set[str]]:
        """Return what is said of each member, by each part of a union, and which are there in all."""
        content = self.named(name)
        parts = [content, *content.get("oneOf", ()), *content.get("anyOf", ())]
        if name in VARIANTS:
            by_type = {part["properties"]["type"]["enum"][0]: part for part in content["oneOf"]}
            if missing := set(VARIANTS[name].split()) - set(by_type):
                raise UnknownError(f"{name} has no type {', '.join(sorted(missing))}")
            parts = [by_type[variant] for variant in VARIANTS[name].split()]
        said: dict[str, list[Any]] = {}
        for part in parts:
            for member, kind in part.get("properties", {}).items():
                said.setdefault(member, []).append(kind)
        return said, set(content.get("required", ()))

    def write(self, name: str, wanted: str, *, base: str, called: str = "", facts: str = "") -> str:
        """Write a class, and first those that its members need; return its name."""
        called = called or name
        if called in self.made:
            return called
        said, required = self.members(name)
        lines = []
        for member in sorted(
            wanted.split(), key=lambda member: (base != "FromServer" and member not in required, member)
        ):
            if member not in said:
                raise UnknownError(f"{name} has no member {member}")
            found = self.joined([self.member(kind, base) for kind in said[member]])
            if base == "FromServer" and member in PASSED_ON:
                found = Member("msgspec.Raw", 'msgspec.Raw(b"{}")')
            is_needed = base != "FromServer" and member in required
            lines.append(self.line(member, found, base, is_needed=is_needed))
        options = "frozen=True" if base == "FromServer" else "frozen=True, kw_only=True"
        self.made[called] = f"class {called}({base}, {options}):\n{facts}" + "".join(lines)
        return called

    @staticmethod
    def line(member: str, found: Member, base: str, *, is_needed: bool) -> str:
        own = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in member)
        if is_needed:
            declared = f"    {own}: {found.type}\n"
        elif base == "FromServer" or found.type == "Any":
            declared = f"    {own}: {found.type} = {found.default}\n"
        else:
            declared = f"    {own}: {found.type.removesuffix(' | None')} | None = None\n"
        return declared + wrapped(found.words)

    @staticmethod
    def joined(found: list[Member]) -> Member:
        """Return what holds whatever the parts of a union have under one name."""
        types = {member.type.removesuffix(" | None") for member in found}
        words = tuple(sorted({word for member in found for word in member.words}))
        if len(types) > 1:
            return Member(*ANY)
        one = Member(found[0].type, found[0].default, words)
        return one.or_none() if any(member.type.endswith(" | None") for member in found) else one

    def member(self, kind: Any, base: str) -> Member:  # noqa: ANN401  # JSON
        """Return what a member may hold."""
        match kind:
            case {"anyOf": [one, {"type": "null"}]}:
                return self.member(one, base).or_none()
            case {"type": [str(one), "null"]}:
                return self.plain({**kind, "type": one}, base).or_none()
            case {"allOf": [only]}:
                return self.member(only, base)
            case {"$ref": str(reference)}:
                return self.referred(reference, base)
        return self.plain(kind, base)

    def plain(self, kind: Any, base: str) -> Member:  # noqa: ANN401  # JSON
        match kind:
            case {"enum": list(words), "type": "string"}:
                return Member("str", '""', tuple(sorted(map(str, words))))
            case {"type": "array", "items": items}:
                return Member(f"list[{self.member(items, base).type}]", "[]")
            case {"type": "object", "additionalProperties": dict(values)}:
                return Member(f"dict[str, {self.member(values, base).type}]", "{}")
            case {"type": str(name)} if name in PRIMITIVES:
                return Member(*PRIMITIVES[name])
        return Member(*ANY)

    def referred(self, reference: str, base: str) -> Member:
        name, content = self.definition(reference)
        is_read = base == "FromServer"
        parts = READ_PARTS if is_read else SENT_PARTS
        if name not in parts:
            return self.member(content, base)
        self.write(name, parts[name], base="FromServer" if is_read else "ToServer")
        return Member(name, f"{name}()")


def wrapped(words: tuple[str, ...]) -> str:
    """Return the words as the text below a member; it may take several lines."""
    text = textwrap.fill(f'"""{", ".join(words)}"""', 116, break_on_hyphens=False)
    return textwrap.indent(text, "    ") + "\n" if words else ""


def generated(directory: Path, version: str) -> str:
    """Return the text of the module, of what the client has written into a directory."""
    schema = Schema(json.loads((directory / FILE).read_text())["definitions"])
    for method, members in NOTIFICATIONS.items():
        schema.write(schema.parameters("ServerNotification", method), members, base="FromServer")
    for method, members in ASKED.items():
        name = schema.parameters("ServerRequest", method)
        schema.write(name, members, base="FromServer")
        schema.write(name.removesuffix("Params") + "Response", REPLIES[method], base="ToServer")
    for method, members in REQUESTS.items():
        name = schema.parameters("ClientRequest", method)
        result = name.removesuffix("Params") + "Response"
        schema.named(result)
        result = schema.write(result, RESULTS[method], base="FromServer") if method in RESULTS else "Nothing"
        facts = f'    method: ClassVar[str] = "{method}"\n    result: ClassVar[type[msgspec.Struct]] = {result}\n'
        called = name.removesuffix("Params")
        schema.write(name, members, base=f"AppRequest[{result}]", called=called, facts=facts)
    return "\n\n".join([HEAD.replace("{version}", version), *schema.made.values()])


def write_schema(directory: Path) -> str:
    """Have the pinned client write its schema into a directory; return the client's version."""
    place = str(directory)
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": place, "CODEX_HOME": place, "LANG": "C.UTF-8"}

    def told(*arguments: str) -> str:
        done = subprocess.run([BIN / "codex", *arguments], env=env, check=True, capture_output=True, text=True)
        return done.stdout

    told("app-server", "generate-json-schema", "--experimental", "--out", place)
    return told("--version").split()[-1]


def written() -> str:
    """Return the module for the pinned client."""
    with tempfile.TemporaryDirectory() as scratch:
        version = write_schema(Path(scratch))
        module = generated(Path(scratch), version)
    ruff = str(Path(sys.executable).with_name("ruff"))
    formatter = [ruff, "format", "-", "--stdin-filename", str(PRODUCT)]
    done = subprocess.run(formatter, input=module, check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout


if __name__ == "__main__":
    PRODUCT.write_text(written())
