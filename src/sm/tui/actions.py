"""What each key of the list does: the dialog that it opens, and what is ordered and said afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

from sm.cli.new import sendable_environment
from sm.client import UnavailableError, session_path
from sm.clock import Clock
from sm.core.errors import SmError
from sm.core.model.context_warnings import advice_of, handoff_file
from sm.fleet import Row
from sm.tui.commands.box import CommandBox
from sm.tui.commands.child import finished
from sm.tui.commands.terminal import CommandTerminal
from sm.tui.details.box import DetailsBox
from sm.tui.dialogs.ask import AskBox
from sm.tui.dialogs.box import refusal_words
from sm.tui.dialogs.confirm import ChoiceBox
from sm.tui.dialogs.help import HelpBox
from sm.tui.dialogs.message import MessageBox
from sm.tui.dialogs.peek import PeekBox
from sm.tui.documents.box import DocumentsBox
from sm.tui.main_screen import MainScreen
from sm.tui.runs.box import RunsBox
from sm.tui.search.box import SearchBox
from sm.tui.server.follower import Follower
from sm.tui.server.requests import Api
from sm.tui.text import one_line

HANDOFF_CHOICES = {
    "a": "ask its agent to write a document and hand off (a message at its next tool call)",
    "d": "hand off with a document that sm makes from its transcript, without a model, once its turn has ended",
}
CANCELLABLE, RETRYABLE = frozenset({"pending", "reserved"}), frozenset({"failed", "cancelled", "pending"})
Answer = dict[str, Any]


class SessionActions(App[None]):
    follower: Follower
    main: MainScreen
    clock: Clock
    terminal: CommandTerminal
    lost: str | None

    @property
    def chosen(self) -> Row | None:
        """The session under the cursor."""
        return self.main.chosen

    def reach(self) -> Api:
        """Return the server; UnavailableError while it does not answer."""
        if self.follower.api is None or self.lost is not None:
            raise UnavailableError(self.lost or "")
        return self.follower.api

    def tell(self, words: str | None) -> None:
        """Say what came of an order; nothing where there is nothing to say."""
        if words:
            self.follower.want()
            self.main.say(one_line(words), warns=False)

    def warn(self, words: str) -> None:
        self.main.say(one_line(words), warns=True)

    async def ordered(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # JSON
        """Return the answer; None if it was refused, which is said then."""
        try:
            return await self.reach().call(method, path, body)
        except SmError as problem:
            self.warn(refusal_words(problem))
            return None

    def outside(self, arguments: Sequence[str]) -> None:
        """Give the terminal to a command of sm, and come back once it has ended."""
        try:
            with self.suspend():
                self.terminal.run(arguments)
        except SuspendNotSupported:
            self.terminal.run(arguments)
        self.follower.want()
        self.refresh()

    def action_attach(self) -> None:
        row = self.chosen
        if row is None:
            return
        if row.ended:
            self.warn(f"{row.name} has ended: r restores it")
        else:
            self.outside(["attach", row.id])

    def action_peek(self) -> None:
        if self.chosen is not None:
            self.push_screen(PeekBox(self.reach, self.chosen), lambda then: self.action_attach() if then else None)

    def action_answer(self) -> None:
        row = self.chosen
        asks = [ask for ask in self.follower.picture.asks if ask["state"] == "open"]
        own = [ask for ask in asks if row is not None and ask["session"] == row.id]
        if own:
            self.push_screen(AskBox(self.reach, own[0], len(own) - 1), self.tell)
        elif asks:
            names = ", ".join(dict.fromkeys(str(ask["name"]) for ask in asks))
            self.warn(f"this session asks nothing; asked is by: {names}")
        else:
            self.warn("no session asks anything")

    def action_message(self) -> None:
        if self.chosen is not None:
            self.push_screen(MessageBox(self.reach, self.chosen), self.tell)

    def action_hand_off(self) -> None:
        if self.chosen is not None:
            self.run_worker(self._hand_off(self.chosen))

    async def _hand_off(self, row: Row) -> None:
        found = await self.ordered("GET", session_path(row.id, "/handoff"))
        if found is None:
            return
        phase = found["phase"]
        choices = dict(HANDOFF_CHOICES)
        choices |= {"c": "cancel the one that is pending"} if phase in CANCELLABLE else {}
        choices |= {"t": "try the last one again"} if phase in RETRYABLE else {}
        about = [] if phase is None else [f"the last one: {phase} {found.get('note') or ''}".rstrip()]
        key = await self.push_screen_wait(ChoiceBox(self.reach, f"Hand off {row.name}", choices, about))
        match key:
            case "a":
                await self._ask_for_handoff(row)
            case "d":
                await self._hand_off_without_model(row)
            case "c":
                await self._change_handoff(row, "DELETE", "/handoff")
            case "t":
                await self._change_handoff(row, "POST", "/handoff/retry")

    async def _ask_for_handoff(self, row: Row) -> None:
        advice = advice_of(handoff_file(row.id))
        text = f"Your user asks you to hand off. {advice.now}\n{advice.how}"
        sent = await self.ordered("POST", session_path(row.id, "/messages"), {"text": text, "mode": "important"})
        self.tell(sent and f"{sent['state']}: {row.name} is asked to hand off ({sent['id']})")

    async def _hand_off_without_model(self, row: Row) -> None:
        """Order it by the command, which makes the document in a process of its own."""
        words = ["handoff", "--auto", "--session", row.id, "--to", row.provider, "--json"]
        _, out, err = await finished(words)
        answer = json.loads(out) if out.startswith("{") else {"error": {"message": err, "hint": ""}}
        if "error" in answer:
            self.warn(f"{answer['error']['message']} {answer['error']['hint']}")
        else:
            self.tell(f"{answer['data']['status']}: {row.name} hands off with {answer['data']['id']}")

    async def _change_handoff(self, row: Row, method: str, route: str) -> None:
        found = await self.ordered(method, session_path(row.id, route))
        self.tell(found and f"{row.name}: handoff {found['phase']}")

    def action_kill(self) -> None:
        if self.chosen is not None:
            self.run_worker(self._kill(self.chosen))

    async def _kill(self, row: Row) -> None:
        if row.ended:
            self.warn(f"{row.name} has ended already")
            return
        choices = {"y": "end it: its client and all processes that it started; documents and logs stay"}
        if self.main.has_children(row.id):
            choices["c"] = "end it with all its children"
        key = await self.push_screen_wait(ChoiceBox(self.reach, f"End {row.name}?", choices, [row.dir]))
        if key is None:
            return
        found = await self.ordered("DELETE", session_path(row.id, "?children=1" if key == "c" else ""))
        self.tell(found and f"ended {', '.join(gone['name'] for gone in found['ended'])}")

    def action_restore(self) -> None:
        if self.chosen is not None:
            self.run_worker(self._restore(self.chosen))

    async def _restore(self, row: Row) -> None:
        if not row.ended:
            self.warn(f"{row.name} has not ended: r restarts one that has")
            return
        found = await self.ordered("POST", session_path(row.id, "/restore"), {"env": sendable_environment()})
        mode = f", in permission mode {found['mode']}" if found and found["mode"] else ""
        self.tell(found and f"restored {found['name']}{mode}")

    def action_details(self) -> None:
        row = self.chosen
        if row is not None:
            self.push_screen(DetailsBox(self.reach, row, lambda: self.main.row(row.id), self.clock.now))

    def action_documents(self) -> None:
        if self.chosen is not None:
            self.push_screen(DocumentsBox(self.reach, self.chosen, self.clock.now))

    def action_search(self) -> None:
        self.push_screen(SearchBox(self.reach), self._show_found)

    def _show_found(self, session: str | None) -> None:
        if session is None:
            return
        self.main.end_filter(clear=True)
        if not self.main.list.choose(session):
            self.warn(f"session {session} is not in the list any more: sm log {session} prints what it showed")

    def action_runs(self) -> None:
        self.push_screen(RunsBox(self.reach))

    def action_command(self) -> None:
        self.push_screen(CommandBox(self.reach, self.outside))

    def action_help(self) -> None:
        self.push_screen(HelpBox(self.reach))

    def action_filter(self) -> None:
        self.main.ask_filter()

    def action_clear_filter(self) -> None:
        self.main.end_filter(clear=True)
