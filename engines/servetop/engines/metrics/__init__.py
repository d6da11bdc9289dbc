"""From an engine's metrics pages to engine samples."""
