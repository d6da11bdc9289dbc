"""Known start-up failures: log patterns, and the advice to show for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.text.shorten import cut_short

MAX_REASON_CHARS = 400
_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)")
_VALIDATION = re.compile(r"ValidationError: \d+ validation errors? for (?P<what>\w+)")
_DETAIL = re.compile(r"^\s+(?:Value error, |Assertion failed, )?(?P<text>.+?)(?: \[type=.*)?$")
_DETAIL_LINES = 2
"""Follows Pydantic's first line: the field's name, if one field is invalid, and the error, indented."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A pattern of a log line, and the message for the user if it occurs."""

    pattern: re.Pattern[str]
    advice: str
    """Format string over the pattern's named groups; `{line}` is the error's own text."""

    @classmethod
    def of(cls, pattern: str, advice: str) -> KnownFailure:
        """Create one from a pattern, which ignores case."""
        return cls(re.compile(pattern, re.IGNORECASE), advice)


CONTAINER_FAILURES = (
    KnownFailure.of(
        r"permission denied while trying to connect to the docker",
        "no permission to use docker's daemon: join the group docker, or give --launcher podman",
    ),
    KnownFailure.of(
        r"cannot connect to the docker daemon|failed to connect to the docker API",
        "docker's daemon is not running: start it, or give --launcher podman",
    ),
    KnownFailure.of(
        r"could not select device driver|unresolvable CDI device|nvidia-container-cli",
        "the runtime cannot pass the GPUs on: install the NVIDIA Container Toolkit ({line})",
    ),
    KnownFailure.of(
        r"pull access denied|manifest( for .*)? (unknown|not found)|error: initializing source|"
        r"pinging container registry|error response from daemon: (get|head) ",
        "its image could not be fetched: check --image ({line})",
    ),
    KnownFailure.of(r"container-init binary not found", "podman lacks its init program: install the package catatonit"),
    KnownFailure.of(
        r"failed to exec pid1|executable file .*not found in \$PATH|OCI runtime .*no such file",
        "its image has no such program: is --image an image of this engine? ({line})",
    ),
)
"""Failures of docker, podman and their container runtimes."""

COMMON_FAILURES = (
    *CONTAINER_FAILURES,
    KnownFailure.of(
        r"address already in use|port is already allocated",
        "its port was taken by another process: choose another with --port, or leave it out",
    ),
    KnownFailure.of(
        r"(CUDA|HIP) out of memory|OutOfMemoryError",
        "out of GPU memory: free the GPU (nvidia-smi), or choose a smaller model or share of memory ({line})",
    ),
    KnownFailure.of(
        r"no kernel image is available|not compatible with the current PyTorch|compute capability .*(not|only) support",
        "this GPU is not supported by the installed build ({line})",
    ),
    KnownFailure.of(
        r"No module named '(?P<module>[\w.]+)'", "the Python package {module} is missing in its environment"
    ),
    KnownFailure.of(r"No space left on device", "the disk is full: free some space, or move the model cache (HF_HOME)"),
    KnownFailure.of(r"^cannot run (?P<what>.+)", "cannot run {what}"),
)


HUB_FAILURES = (
    KnownFailure.of(
        r"GatedRepoError|gated repo|awaiting a review",
        "the model's licence must be accepted on the model hub first: log in there and set HF_TOKEN",
    ),
    *(
        KnownFailure.of(
            pattern, "there is no such model {model}: check --model (an alias, a hub name or a local folder)"
        )
        for pattern in (
            r"HFValidationError.*: '(?P<model>[^']+)'",
            r"(?P<model>[^\s'\"]+) is not a local folder and is not",
            r"Invalid repository ID or local directory specified: '(?P<model>[^']+)'",
            r"Repository Not Found for url: \S+?//[^/]+/(?:api/models/)?(?P<model>[\w.-]+/[\w.-]+?)(?:[/.?]|$)",
        )
    ),
    KnownFailure.of(
        r"RepositoryNotFoundError",
        "there is no such model: check --model (an alias, a hub name or a local folder)",
    ),
    KnownFailure.of(
        r"LocalEntryNotFoundError|couldn't connect to 'https://|Max retries exceeded|"
        r"outgoing traffic has been disabled",
        "the model is not on this machine and the model hub cannot be reached: give a local folder as --model",
    ),
)
"""Failures of the model hub that most engines download from."""


def known_failure(lines: Sequence[str], failures: Sequence[KnownFailure]) -> str | None:
    """Return the message of the first failure in the table that matches a line; `lines` have no log prefixes."""
    for failure in failures:
        for line in lines:
            if match := failure.pattern.search(line):
                return _short(failure.advice.format_map({**match.groupdict(""), "line": error_text(line)}))
    return None


def first_error(lines: Sequence[str]) -> str | None:
    """Return the first `SomeError: text` of the lines; for a validation error its details."""
    return next((_error_at(lines, at) for at, line in enumerate(lines) if _ERROR.match(line)), None)


def last_error(lines: Sequence[str]) -> str | None:
    """Return the last `SomeError: text` of the lines, the end of a Python traceback."""
    return next((_error_at(lines, at) for at in reversed(range(len(lines))) if _ERROR.match(lines[at])), None)


def _error_at(lines: Sequence[str], at: int) -> str:
    found = _VALIDATION.search(lines[at])
    if found is None:
        return _short(lines[at])
    field = ""
    for line in lines[at + 1 : at + 1 + _DETAIL_LINES]:
        if detail := _DETAIL.match(line):
            return _short(f"{found['what']}{field}: {detail['text']}")
        field = f".{line.strip()}"
    return _short(lines[at])


def error_text(line: str) -> str:
    """Return the text after `SomeError: `, or the whole line."""
    match = _ERROR.match(line)
    return match[2] if match else line.strip()


def _short(text: str) -> str:
    return cut_short(" ".join(text.split()), MAX_REASON_CHARS)
