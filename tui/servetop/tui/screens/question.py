"""Modal questions: a choice by key or mouse, or a line of text."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Button, Input

from servetop.core.errors import UsageError
from servetop.core.text.formats import clock_time
from servetop.tui.screens.modal import Modal, PlainText
from servetop.tui.state.command_requests import Question
from servetop.tui.state.time_input import parse_time


class QuestionScreen(Modal[str]):
    """Choices as buttons, each also on a key; the result of Escape is None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "go back"),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.when_repeated = question.when_repeated
        self._text = question.text
        self._choices = {choice.key: choice for choice in question.choices}

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield PlainText(self._text, classes="question")
            for choice in self._choices.values():
                yield Button(_label(choice.key, choice.label, choice.hint), name=choice.key, compact=True)
            yield Button(_label("esc", "go back", ""), name="escape", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self._answer(event.button.name or "")

    def on_key(self, event: events.Key) -> None:
        if event.key in self._choices:
            event.stop()
            self._answer(event.key)

    def _answer(self, key: str) -> None:
        self.dismiss(self._choices[key].result if key in self._choices else None)


class NoteQuestion(Modal[str]):
    """One line of text for a mark, which may be empty; the result of Escape is None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "go back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield PlainText("Mark this time. Note (optional):", classes="question")
            yield Input(max_length=120, compact=True)
            yield PlainText("enter marks, esc goes back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class TimeQuestion(Modal[float]):
    """A time to go to, in seconds of the run; the result of Escape is None. Errors are shown below the field."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "go back")]

    def __init__(self, *, edge: float) -> None:
        """`edge` is the end of the run."""
        super().__init__()
        self._edge = edge

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield PlainText(f"Go to which time? The run is {clock_time(self._edge)} long.", classes="question")
            yield Input(max_length=20, compact=True)
            yield PlainText("90, 1:30, 0:01:30 or 50%; enter goes there, esc goes back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(parse_time(event.value, edge=self._edge))
        except UsageError as error:
            self.query_one(".hint", PlainText).update(str(error))


class TextQuestion(Modal[str]):
    """One line of text; the result of Escape is None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "go back")]

    def __init__(self, text: str, *, hint: str, start: str = "") -> None:
        """`start` is the initial text."""
        super().__init__()
        self._text, self._hint, self._start = text, hint, start

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield PlainText(self._text, classes="question")
            yield Input(self._start, max_length=250, compact=True, select_on_focus=False)
            yield PlainText(self._hint, classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


def _label(key: str, text: str, hint: str) -> Content:
    return Content.assemble((f"{key:>3}  ", "bold"), (f"{text:<18}", "bold"), (hint, "$text-muted"))
