"""Parses and validates generation requests as vLLM does, and rejects what the simulator does not support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from servetop.simulator.server.tokens import count_tokens

DEFAULT_COMPLETION_TOKENS = 16
CHAT_TEMPLATE_TOKENS = 4
"""Tokens that the chat template adds to each message."""


class ApiError(Exception):
    """An error response in vLLM's format."""

    def __init__(
        self, message: str, *, status: int = 400, error_type: str = "BadRequestError", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.param = param

    def body(self) -> bytes:
        """Return `{"error": {"message", "type", "param", "code"}}`."""
        error = {"message": str(self), "type": self.error_type, "param": self.param, "code": self.status}
        return orjson.dumps({"error": error})


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """A parsed request. `prompt` is text or token ids; `prompt_tokens` is its counted length."""

    chat: bool
    prompt: str | list[int]
    prompt_tokens: int
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    seed: int | None


def read_body(body: bytes) -> dict[str, Any]:
    """Parse the JSON object of a request body."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(f"Invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ApiError("Input should be a JSON object")
    return data


def read_generation(data: dict[str, Any], *, chat: bool, context_limit: int) -> GenerationRequest:
    """Parse a completion or chat request and count its tokens; ApiError with vLLM's text if it cannot be served."""
    for name in ("n", "best_of"):
        if _integer(data, name, default=1) != 1:
            raise ApiError(f"{name} must be 1: the simulator returns one completion per request", param=name)
    prompt, prompt_tokens = _chat_prompt(data) if chat else _completion_prompt(data)
    max_tokens = _max_tokens(data, chat=chat, context_limit=context_limit, prompt_tokens=prompt_tokens)
    options = data.get("stream_options") or {}
    if not isinstance(options, dict):
        raise ApiError("stream_options should be an object", param="stream_options")
    return GenerationRequest(
        chat=chat,
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        min_tokens=min(_integer(data, "min_tokens", default=0), max_tokens),
        ignore_eos=bool(data.get("ignore_eos")),
        stream=bool(data.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        seed=data["seed"] if isinstance(data.get("seed"), int) else None,
    )


def read_count(data: dict[str, Any]) -> int:
    """Parse `n`, the completions per prompt."""
    count = _integer(data, "n", default=1)
    if count < 1:
        raise ApiError(f"n must be at least 1, got {count}.", param="n")
    if _integer(data, "best_of", default=count) != count:
        raise ApiError("best_of must equal n: the simulator does not rank completions", param="best_of")
    return count


def read_prompt(prompt: Any) -> tuple[str | list[int], int]:
    """Parse a prompt (a string, token ids, or a list of one of these) and count its tokens."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt, count_tokens(prompt)
    if isinstance(prompt, list) and all(type(token) is int for token in prompt):
        return prompt, len(prompt)
    if isinstance(prompt, list) and len(prompt) > 1:
        raise ApiError("the simulator takes one prompt per request, not a batch", param="prompt")
    raise ApiError("prompt should be a string or a list of token ids", param="prompt")


def _completion_prompt(data: dict[str, Any]) -> tuple[str | list[int], int]:
    if "prompt" not in data:
        raise ApiError("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    prompt, tokens = read_prompt(data["prompt"])
    if not tokens:
        raise ApiError("The decoder prompt cannot be empty", param="prompt")
    return prompt, tokens


def _chat_prompt(data: dict[str, Any]) -> tuple[str, int]:
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise ApiError("messages should be a list of at least one message", param="messages")
    text = "\n".join(_content(message.get("content")) for message in messages)
    return text, count_tokens(text) + CHAT_TEMPLATE_TOKENS * len(messages)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _max_tokens(data: dict[str, Any], *, chat: bool, context_limit: int, prompt_tokens: int) -> int:
    name = "max_completion_tokens" if data.get("max_completion_tokens") is not None else "max_tokens"
    default = max(context_limit - prompt_tokens, 1) if chat else DEFAULT_COMPLETION_TOKENS
    value = _integer(data, name, default=default)
    if value < 1:
        raise ApiError(f"{name} must be at least 1, got {value}. (parameter={name}, value={value})", param=name)
    if value > context_limit:
        raise ApiError(
            f"{name}={value} cannot be greater than max_model_len={context_limit}. "
            f"Please request fewer output tokens. (parameter={name}, value={value})",
            param=name,
        )
    if prompt_tokens + value > context_limit:
        raise ApiError(
            f"This model's maximum context length is {context_limit} tokens. However, you requested {value} output "
            f"tokens and your prompt contains {prompt_tokens} input tokens, for a total of {prompt_tokens + value} "
            "tokens. Please reduce the length of the input prompt or the number of requested output tokens. "
            f"(parameter=input_tokens, value={prompt_tokens})",
            param="input_tokens",
        )
    return value


def _integer(data: dict[str, Any], name: str, *, default: int) -> int:
    value = data.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise ApiError(f"{name} should be a valid integer", param=name)
    return value
