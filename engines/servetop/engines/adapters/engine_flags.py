"""Options on an engine's own command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.core.errors import UsageError

SECRET_FLAGS = ("--api-key", "--hf-token", "--token")


def flag_value(args: Sequence[str], flag: str) -> str | None:
    """Return the last value of a flag, given as `--flag V`, `--flag=V` or with underscores; None without one."""
    values = _values(args, flag)
    return values[-1] if values else None


def with_flags(args: Sequence[str], wanted: Mapping[str, object]) -> list[str]:
    """Return `args`, preceded by the wanted flags that they lack; None values are skipped."""
    added = [
        part
        for flag, value in wanted.items()
        if value is not None and flag_value(args, flag) is None
        for part in (flag, str(value))
    ]
    return [*added, *args]


def without_flag(args: Sequence[str], flag: str) -> list[str]:
    """Return `args` without `--flag V` and `--flag=V`."""
    kept, skip = [], False
    for arg in args:
        name, equals, _ = arg.partition("=")
        ours = not skip and name.replace("_", "-") == flag.replace("_", "-")
        if not skip and not ours:
            kept.append(arg)
        skip = ours and not equals
    return kept


def agreed(ours: int | None, args: Sequence[str], flag: str) -> int | None:
    """Return a number given as servetop's option or in the engine's arguments; UsageError if they differ."""
    text = flag_value(args, flag)
    if text is None:
        return ours
    if not text.isdecimal():
        raise UsageError(f"{flag} {text!r} is not a whole number")
    if ours is not None and int(text) != ours:
        raise UsageError(f"{flag} is given twice, as {ours} and after -- as {text}: leave one out")
    return int(text)


def reachable(host: str | None) -> str:
    """Return the host to connect to for a server that listens on this host; None is loopback."""
    return "127.0.0.1" if host in (None, "", "0.0.0.0", "::") else str(host)


def refuse_secrets(args: Sequence[str]) -> None:
    """Raise UsageError for a key in the arguments, which are recorded and visible to every user of the machine."""
    given = next((flag for flag in SECRET_FLAGS if _values(args, flag)), None)
    if given is not None:
        raise UsageError(
            f"a secret after {given} would be recorded: export it for the engine (VLLM_API_KEY, HF_TOKEN) instead; "
            "--api-key-env names the variable with the key that servetop itself sends"
        )


def _values(args: Sequence[str], flag: str) -> list[str]:
    values = []
    for arg, following in zip(args, [*args, ""][1:], strict=True):
        name, equals, value = arg.partition("=")
        if name.startswith("--") and name.replace("_", "-") == flag.replace("_", "-"):
            values.append(value if equals else following)
    return values
