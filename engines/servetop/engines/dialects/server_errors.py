"""Recognises what is no part of a completion: errors in any envelope, failed finish reasons, keep-alives.

Servers, gateways and proxies report errors with HTTP 200 in many forms, and clients have to tell them from completions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from servetop.engines.dialects.json_values import error_message, load_json

KEEP_ALIVES = frozenset(
    ("ping", "pong", "keep-alive", "keepalive", "keep_alive", "heartbeat", "heart-beat", "alive", "processing")
)
"""Names and texts of events that only keep the connection open, in lower case."""

_FAILED = re.compile(
    r"abort|cancel|error|fail|time[d_ -]*out|filter|safety|sensitive|prohibited|blocklist|recitation|spii|guardrail"
    r"|refus|insufficient|overload|unload|malformed|evict|preempt|killed|reject|disconnect|interrupt|shut_?down",
    re.IGNORECASE,
)
"""Finish reasons after which the completion is not what the model would have said."""
_UNFINISHED = frozenset(("", "null", "none", "not_finished", "unfinished", "in_progress", "finish_reason_unspecified"))
_PAYLOAD_KEYS = (
    "choices",
    "text",
    "content",
    "token",
    "text_output",
    "generated_text",
    "output",
    "delta",
    "response",
    "meta_info",
)
_CODE_KEYS = ("code", "status", "status_code", "statusCode", "error_code")
_FAILURES = frozenset(("error", "failed", "fail"))
_ERROR_KEYS = ("err", "fault", "failure")
_ERROR_ENDINGS = ("error", "errors", "exception")
"""Names of fields, in lower case, that report an error where there is no part of a completion."""
_FLAT_KEYS = (
    "detail",
    "message",
    "msg",
    "error_message",
    "error_msg",
    "errorMessage",
    "error_description",
    "Message",
    "title",
)


def reported_error(content: object) -> str | None:
    """Return the message of a JSON value that reports an error, on one line; None if it reports none.

    It does if it has an `error` or a failed `status`, also beside `choices`, or no part of a completion but a message
    or the code of one.
    """
    if isinstance(content, list):
        return next((text for each in content[:1] if (text := reported_error(each)) is not None), None)
    if not isinstance(content, dict):
        return None
    if content.get("error") or content.get("errors") or content.get("object") == "error":
        return error_message(content)
    if _word(content.get("status")) in _FAILURES:
        return error_message(content)
    if any(content.get(key) for key in _PAYLOAD_KEYS):
        return None
    if content.get("usage"):  # a gateway that counts failed requests, too
        return error_message(content) if _has_failure_code(content) else None
    return error_message(content) if _is_flat_error(content) else None


def _is_flat_error(content: Mapping[str, Any]) -> bool:
    """Whether an object without any part of a completion is an error, such as `{"code": 503, "message": "…"}`."""
    if content.get("type") == "error" or content.get("error") in ("", {}, []):
        return True
    if content.get("success") is False or content.get("ok") is False:
        return True
    if any(_is_error_key(key) and value and isinstance(value, str | dict | list) for key, value in content.items()):
        return True
    if _word(content.get("type")) in KEEP_ALIVES or _word(content.get("message")) in KEEP_ALIVES:
        return False
    base = content.get("base_resp")
    codes = [content.get(key) for key in _CODE_KEYS]
    if isinstance(base, dict):
        codes.append(base.get("status_code"))
        content = {**content, "message": base.get("status_msg")}
    if any(map(_is_success, codes)):
        return False
    if any(map(_is_failure, codes)):
        return True
    texts = (content.get(key) for key in _FLAT_KEYS)
    return isinstance(content.get("detail"), dict) or any(isinstance(text, str | list) and text for text in texts)


def _is_error_key(key: str) -> bool:
    """Whether a field reports an error by its name, such as `fault`, or `throttlingException` of Amazon Bedrock."""
    lower = key.lower()
    return lower in _ERROR_KEYS or lower.endswith(_ERROR_ENDINGS)


def _has_failure_code(content: Mapping[str, Any]) -> bool:
    return any(_is_failure(content.get(key)) for key in _CODE_KEYS)


def _is_success(code: object) -> bool:
    return type(code) is int and (code == 0 or 200 <= code < 300)


def _is_failure(code: object) -> bool:
    if isinstance(code, str):
        return (code.isdigit() and int(code[:9]) >= 400) or code.lower() in _FAILURES
    return type(code) is int and code >= 400


def _word(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def is_notice(data: bytes) -> bool:
    """Whether the data of a named event are an object that is an error only because it has a message."""
    try:
        content = load_json(data)
    except ValueError:
        return False
    if not isinstance(content, dict) or reported_error(content) is None:
        return False
    return reported_error({**content, **dict.fromkeys(_FLAT_KEYS)}) is None


def is_keep_alive(text: bytes) -> bool:
    """Whether the data or the name of an event only keeps the connection open."""
    return text.strip(b' \t\r\n"').lower().decode("latin-1") in KEEP_ALIVES


def is_error_name(name: bytes) -> bool:
    """Whether an event of this name reports an error, as `event: error` does."""
    lower = name.lower()
    return lower.endswith((b"error", b"exception"))


def choice_end(choice: object) -> tuple[int, str | None]:
    """Return 1 if a choice ends here, else 0, and why its completion failed; some servers send an empty reason.

    `stop`, `length`, `tool_calls` and unknown reasons complete a choice; see `_FAILED` for those that do not. An
    `error` of the choice, or of its delta or message, is a failure whatever its reason.
    """
    if not isinstance(choice, dict):
        return 0, None
    reason, error = choice.get("finish_reason"), choice.get("error")
    for part in (choice.get("delta"), choice.get("message")):
        if isinstance(part, dict):
            error = error or part.get("error")
    if not reason and not error:
        return 0, None
    failure = failed_finish(reason)
    if error:
        why = error_message(error)
        return 1, f"{failure}: {why}" if failure else f"the server reports an error of the completion: {why}"
    return int(str(reason).lower() not in _UNFINISHED), failure


def failed_finish(reason: object) -> str | None:
    """Return an error text if a finish reason says that the completion was not completed; None for other reasons."""
    name, words = (reason.get("type"), reason.get("message")) if isinstance(reason, dict) else (reason, None)
    if not isinstance(name, str) or not _FAILED.search(name):
        return None
    why = f": {error_message(words)}" if words else ""
    if "abort" in name.lower():
        return f"the server aborted the request{why}"
    return f"the server did not complete the response: finish_reason {name[:40]!r}{why}"
