"""The entries of the command palette, in the order of the app, which groups them by what they act on."""

from __future__ import annotations

from textual.command import DiscoveryHit, Hits
from textual.system_commands import SystemCommandsProvider


class ActionSearch(SystemCommandsProvider):
    """Lists the app's actions in its own order; Textual's provider sorts them by their sentences."""

    async def discover(self) -> Hits:
        """Yield all entries, before anything is typed."""
        for title, text, callback, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(title, callback, help=text)
