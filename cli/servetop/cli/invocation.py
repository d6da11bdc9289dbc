"""What a command gets besides its parsed options: the engine's own options, and a sender started in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    from servetop.run.process.first_sender import FirstSender


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Reaches commands as `context.obj`."""

    engine_args: tuple[str, ...] = ()
    """The engine's own options, those after `--`."""
    sender: FirstSender | None = None
    """The sender of the run that this process plays, if it does: it loads already."""


def invocation_of(context: typer.Context) -> Invocation:
    """Of a command that runs; without anything while a shell completes it."""
    return context.obj or Invocation()
