"""Pictures of the page with a small fleet in it, for the documents and for looking at."""

import contextlib
import json

from tests.api.test_asks import asking
from tests.web.page_rig import ShownPane, begin, conversation, prompt, question, site
from tests.web.test_page_parts import readings

PICTURES = (("fleet", "desktop", "light"), ("fleet", "phone", "dark"), ("session", "desktop", "light"))
EVERY = tuple(
    (name, size, scheme)
    for name in ("fleet", "session")
    for size in ("desktop", "phone")
    for scheme in ("light", "dark")
)
TALK = (
    (
        "Fix the failing parser test.",
        "I looked at `parser.py`: the comma case is missing.\n\nI will:\n\n1. add the case\n2. run the tests",
    ),
    (
        "Go on.",
        (
            'Done. The change:\n\n```python\nif token == ",":\n    return Comma()\n```\n\n'
            "| test | before | now |\n|---|---|---|\n| `test_comma` | failed | passes |"
        ),
    ),
)
SCREEN = (
    "\x1b[1m● Bash\x1b[0m(make test)",
    "  \x1b[2m⎿\x1b[0m  \x1b[32m128 passed\x1b[0m in 4.2s",
    "",
    "\x1b[1m●\x1b[0m All tests pass. Shall I remove the old build directory?",
    "",
    "\x1b[2m────────────────────────────────────────────────────────\x1b[0m",
    "❯ ",
)


@contextlib.asynccontextmanager
async def fleet(here, place):
    api = here.api
    lead = await api.new("lead")
    for name in ("parser", "docs"):
        await api.new(name, parent=lead)
    ids = {name: api.engine.sessions.find(name).session.id for name in ("lead", "parser", "docs")}
    talk = conversation(place / "t.jsonl", *TALK)
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "128 passed in 4.2s"}
    with talk.open("a") as file:
        for kind, block in (("assistant", call), ("user", result)):
            file.write(json.dumps({"type": kind, "message": {"role": kind, "content": [block]}}) + "\n")
    await begin(api, ids["parser"], talk)
    await prompt(api, ids["parser"])
    await readings(api, ids["parser"], 12_000, 34_000, 61_000, 96_000, 120_000, 131_000)
    await begin(api, ids["lead"])
    await readings(api, ids["lead"], 20_000, 41_000)
    await prompt(api, ids["lead"])
    await begin(api, ids["docs"])
    await api.call("POST", f"/sessions/{ids['docs']}/messages", body={"text": "Describe the new option too, please."})
    await api.call("POST", f"/sessions/{ids['parser']}/messages", body={"text": "Run the slow tests as well."})
    api.engine.ports.panes.pane = lambda _: ShownPane(*SCREEN, size=(72, 10))
    for name, session in ids.items():
        await api.alter(session, directory=f"/home/dev/{name}")
    asked = {"questions": [question("Which database should the example use?", "SQLite", "PostgreSQL")]}
    rule = {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}
    async with (
        asking(api, ids["parser"], tool_input={"command": "rm -r build"}, permission_suggestions=[rule]),
        asking(api, ids["docs"], tool_name="AskUserQuestion", tool_input=asked),
    ):
        yield ids


async def pictures(place, out, wanted=PICTURES):
    async with site(place) as here, fleet(here, place) as ids:
        paths = {"fleet": "/", "session": f"/web/sessions/{ids['parser']}"}
        for name, size, scheme in wanted:
            tab = await here.tab(size, scheme)
            await tab.page.goto(here.at(paths[name]))
            await tab.page.wait_for_timeout(700)
            file = out / f"web-{name}-{size}-{scheme}.png"
            await tab.page.screenshot(path=file, full_page=name == "session")
            await tab.page.context.close()
    return [f"web-{'-'.join(each)}.png" for each in wanted]
