"""The server of the agent's tools as a client has it: a process with lines on its standard input and output."""

import asyncio
import contextlib
import json
import sys

COMMAND = (sys.executable, "-I", "-m", "sm.agent_tools")


class Tools:
    def __init__(self, process):
        self.process = process
        self.answers = {}
        """By id, of those that came while another was waited for."""
        self.last = 0

    def write(self, line):
        self.process.stdin.write(line + b"\n")

    def ask(self, method, params=None, **more):
        """Send a request and return its id."""
        self.last += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params, **more}).encode())
        return self.last

    def tell(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    async def answer(self, request):
        while request not in self.answers:
            line = await asyncio.wait_for(self.process.stdout.readline(), 20)
            assert line, "the server has ended"
            answer = json.loads(line)
            assert answer["jsonrpc"] == "2.0"
            self.answers[answer["id"]] = answer
        return self.answers.pop(request)

    def begin(self, tool, /, **given):
        meta = {"x-codex-turn-metadata": {"thread_source": given.pop("thread", "user")}}
        return self.ask("tools/call", {"name": tool, "arguments": given, "_meta": meta})

    async def call(self, tool, /, **given):
        """Return the text of a result, and whether it is an error."""
        return shown(await self.answer(self.begin(tool, **given)))

    async def sm(self, *arguments, **given):
        return await self.call("sm", arguments=list(arguments), **given)


def shown(answer):
    [content] = answer["result"]["content"]
    assert content["type"] == "text"
    return content["text"], answer["result"]["isError"]


@contextlib.asynccontextmanager
async def tools(env, directory):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, env=env, cwd=directory, stdin=pipe, stdout=pipe)
    try:
        yield Tools(process)
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 10)
