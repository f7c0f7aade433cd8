"""A question with a key for each answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual import events
from textual.widgets import Static

from sm.tui.dialogs.box import Reach, ServerDialog, plain_text


class ChoiceBox(ServerDialog[str]):
    """Closes with the key that was pressed; None if the user has left."""

    def __init__(self, reach: Reach, head: str, choices: Mapping[str, str], about: Sequence[str] = ()) -> None:
        """`choices`: what each key does, in words."""
        super().__init__(reach, head)
        self.choices, self.about = dict(choices), about

    def body(self) -> Iterable[Static]:
        shown = [f"{key}  {words}" for key, words in self.choices.items()]
        yield Static(plain_text([*self.about, *([""] if self.about else []), *shown]), markup=False)

    def on_key(self, event: events.Key) -> None:
        if event.character in self.choices:
            event.stop()
            self.dismiss(event.character)
