"""Serving without continuous batching: requests are collected into a padded batch, which runs to its end.

`python pipeline_server.py MODEL --port 8000 --batching dynamic --max-num-seqs 8 --batch-timeout 0.05`: a batch starts
when it is full, or when its first request has waited that long; with `--batching none` each request is a batch. All
responses of a batch are sent when its longest completion ends, so a stream is a single event.

servetop runs it with the Python that has transformers and torch; it imports nothing from servetop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

OWNER = "servetop-pipeline"
MAX_BODY_BYTES = 64 << 20


@dataclass
class PipelineRequest:
    """One request: the prompt's token ids, limits, and the future result (tokens, ended by an end token)."""

    ids: list[int]
    max_tokens: int
    ignore_eos: bool
    temperature: float
    result: asyncio.Future[tuple[list[int], bool]]


@dataclass
class RequestCounts:
    """The values of `/metrics`."""

    running: int = 0
    finished: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0


class Model:
    """A causal language model; `generate` blocks its thread."""

    def __init__(self, options: argparse.Namespace) -> None:
        transformers, self.torch = import_module("transformers"), import_module("torch")
        device = options.device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=options.dtype)
        self.model = loaded.to(device).eval()
        ends = self.model.generation_config.eos_token_id
        self.ends = [] if ends is None else ends if isinstance(ends, list) else [ends]
        self.version: str = transformers.__version__

    def generate(self, batch: Sequence[PipelineRequest]) -> list[tuple[list[int], bool]]:
        """Return (tokens, ended by an end token) of each request, each cut at its own limit."""
        longest = max(len(each.ids) for each in batch)
        pad = self.ends[0] if self.ends else 0
        rows = [[pad] * (longest - len(each.ids)) + each.ids for each in batch]
        mask = [[0] * (longest - len(each.ids)) + [1] * len(each.ids) for each in batch]
        options: dict[str, Any] = {"max_new_tokens": max(each.max_tokens for each in batch), "pad_token_id": pad}
        if any(each.ignore_eos for each in batch):
            options |= {"eos_token_id": None, "min_new_tokens": options["max_new_tokens"]}
        temperature = max(each.temperature for each in batch)
        options |= {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        tensor, device = self.torch.tensor, self.model.device
        with self.torch.inference_mode():
            output = self.model.generate(
                tensor(rows, device=device), attention_mask=tensor(mask, device=device), **options
            )
        return [self._cut(row[longest:], each) for row, each in zip(output.tolist(), batch, strict=True)]

    def _cut(self, tokens: list[int], request: PipelineRequest) -> tuple[list[int], bool]:
        tokens = tokens[: request.max_tokens]
        end = next((at for at, token in enumerate(tokens) if token in self.ends), None)
        if request.ignore_eos or end is None:
            return tokens, False
        return tokens[: end + 1], True


class Batches:
    """Collects requests into batches, and runs one batch at a time."""

    def __init__(self, model: Model, *, size: int, timeout: float) -> None:
        self.model, self.size, self.timeout = model, size, timeout
        self.waiting: asyncio.Queue[PipelineRequest] = asyncio.Queue()
        self.counts = RequestCounts()
        self._thread = ThreadPoolExecutor(1)

    async def run(self) -> None:
        """Run batches until the task is cancelled."""
        while True:
            batch = await self._next_batch()
            self.counts.running = len(batch)
            loop = asyncio.get_running_loop()
            try:
                results = await loop.run_in_executor(self._thread, self.model.generate, batch)
            except Exception as error:  # an error in the model's code fails these requests, not the server
                for request in batch:
                    request.result.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
                self.counts.running = 0
                continue
            self.counts.running = 0
            for request, (tokens, ended) in zip(batch, results, strict=True):
                self.counts.finished += 1
                self.counts.prompt_tokens += len(request.ids)
                self.counts.generation_tokens += len(tokens)
                request.result.set_result((tokens, ended))

    async def _next_batch(self) -> list[PipelineRequest]:
        batch = [await self.waiting.get()]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        while len(batch) < self.size:
            try:
                batch.append(await asyncio.wait_for(self.waiting.get(), max(0.0, deadline - loop.time())))
            except TimeoutError:
                break
        return batch

    def page(self) -> str:
        """Return the metrics as Prometheus text."""
        counts = self.counts
        values = {
            "requests_running": counts.running,
            "requests_waiting": self.waiting.qsize(),
            "max_num_seqs": self.size,
            "requests_finished_total": counts.finished,
            "prompt_tokens_total": counts.prompt_tokens,
            "generation_tokens_total": counts.generation_tokens,
        }
        return "".join(f"servetop_pipeline_{name} {value}\n" for name, value in values.items())


@dataclass
class Refused(Exception):
    """A request that is answered by an error response."""

    status: int
    message: str


@dataclass
class PipelineServer:
    """The HTTP side: OpenAI's completions and chat, `/health`, `/v1/models`, `/metrics`."""

    batches: Batches
    name: str
    longest: int
    seen: int = field(default=0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, one request after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ", 2)
                fields = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines[1:])}
                size = int(fields.get("content-length") or 0)
                if size > MAX_BODY_BYTES:
                    break
                body = await reader.readexactly(size)
                writer.write(await self._respond(method, path.partition("?")[0], body))
                await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        writer.close()

    async def _respond(self, method: str, path: str, body: bytes) -> bytes:
        try:
            if method == "GET":
                return self._get(path)
            if path not in ("/v1/completions", "/v1/chat/completions"):
                raise Refused(404, f"there is no {path} here")
            return await self._complete(_object(body), chat="chat" in path)
        except Refused as refused:
            return _response({"error": {"message": refused.message}}, status=refused.status)
        except RuntimeError as error:
            return _response({"error": {"message": str(error)}}, status=500)

    def _get(self, path: str) -> bytes:
        if path == "/health":
            return _response({"status": "ok"})
        if path == "/version":
            return _response({"version": self.batches.model.version})
        if path == "/metrics":
            return _framed(self.batches.page().encode(), kind="text/plain; version=0.0.4")
        if path == "/v1/models":
            card = {"id": self.name, "object": "model", "owned_by": OWNER, "max_model_len": self.longest}
            return _response({"object": "list", "data": [card]})
        raise Refused(404, f"there is no {path} here")

    async def _complete(self, request: Mapping[str, Any], *, chat: bool) -> bytes:
        ids, max_tokens = self._ids(request, chat=chat), int(request.get("max_tokens") or 16)
        if len(ids) + max_tokens > self.longest:
            raise Refused(400, f"{len(ids)} prompt tokens and {max_tokens} completion tokens exceed {self.longest}")
        result: asyncio.Future[tuple[list[int], bool]] = asyncio.get_running_loop().create_future()
        temperature = float(request.get("temperature") or 0.0)
        self.batches.waiting.put_nowait(
            PipelineRequest(ids, max_tokens, bool(request.get("ignore_eos")), temperature, result)
        )
        tokens, ended = await result
        text = self.batches.model.tokenizer.decode(tokens, skip_special_tokens=True)
        self.seen += 1
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(tokens), "total_tokens": len(ids) + len(tokens)}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop" if ended else "length"}
        about = {"id": f"cmpl-{self.seen}", "model": self.name}
        if not request.get("stream"):
            choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            kind = "chat.completion" if chat else "text_completion"
            return _response({**about, "object": kind, "choices": [choice], "usage": usage})
        choice |= {"delta": {"content": text}} if chat else {"text": text}
        kind = "chat.completion.chunk" if chat else "text_completion"
        events = [{**about, "object": kind, "choices": [choice], "usage": usage}, "[DONE]"]
        data = "".join(f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n" for each in events)
        return _framed(data.encode(), kind="text/event-stream")

    def _ids(self, request: Mapping[str, Any], *, chat: bool) -> list[int]:
        """Return the prompt's token ids; the prompt is a text, token ids, or messages."""
        prompt = request.get("messages") if chat else request.get("prompt")
        if chat and isinstance(prompt, list):
            prompt = "\n".join(str(each.get("content")) for each in prompt if isinstance(each, dict))
        if isinstance(prompt, str) and prompt:
            return list(self.batches.model.tokenizer(prompt)["input_ids"])
        if isinstance(prompt, list) and prompt and all(isinstance(each, int) for each in prompt):
            return prompt
        raise Refused(400, "the prompt must be a text or a list of token ids, and not empty")


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(400, "the body must be a JSON object")
    return found


def _response(content: object, *, status: int = 200) -> bytes:
    return _framed(json.dumps(content).encode(), status=status)


def _framed(body: bytes, *, kind: str = "application/json", status: int = 200) -> bytes:
    return f"HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--batching", choices=["dynamic", "none"], default="dynamic")
    parser.add_argument("--max-num-seqs", type=int, default=8)
    parser.add_argument(
        "--batch-timeout", type=float, default=0.05, help="seconds that the first request of a batch waits for others"
    )
    parser.add_argument("--device", help="cpu, cuda, …; default: a GPU if there is one")
    parser.add_argument("--dtype", default="auto")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    model = Model(options)
    size = 1 if options.batching == "none" else max(1, options.max_num_seqs)
    batches = Batches(model, size=size, timeout=options.batch_timeout)
    longest = getattr(model.model.config, "max_position_embeddings", None) or 1 << 30
    server = await asyncio.start_server(
        PipelineServer(batches, options.model, longest).serve, options.host, options.port
    )
    line = f"servetop pipeline: {options.batching} batching of {size}, transformers {model.version}\n"
    sys.stdout.write(line)  # noqa: TID251 - a server's log; servetop is not installed where it runs
    sys.stdout.flush()  # noqa: TID251
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    work = asyncio.create_task(batches.run())
    await stopped.wait()
    work.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(parse_arguments()))
