"""A driver that submits once it is told that its client is free."""

import asyncio


class SlowDriver:
    def __init__(self):
        self.free = asyncio.Event()
        self.typed = []

    async def ready(self, options, report, leave):
        report("the client is busy")
        while not self.free.is_set():
            if leave():
                return False
            await asyncio.sleep(0.001)
        return not leave()

    async def clear(self, leave):
        return await self.prompt("/clear", leave)

    async def withdraw(self):
        return None

    async def prompt(self, text, leave, *, now=False):
        while not leave():
            if self.free.is_set():
                self.typed.append(text)
                return None
            await asyncio.sleep(0.001)
        return "gave way"
