"""Events of a stream as each server writes them, made from a text and a number."""

from collections.abc import Callable, Sequence
from string import Template

Render = Callable[[str, int], str]
"""An event from its text (as JSON has it, quotes and all) and a number that goes up."""


def event(template: str) -> Render:
    """Fills `$text` and `$count` (from the count also `$total`, `$share`, `$log`, `$id` and `$choice`)."""
    form = Template(template)

    def render(text: str, count: int) -> str:
        derived = {"total": 16 + count, "share": count / 7, "log": -count / 3, "id": 7 * count, "choice": count % 3}
        return form.substitute(text=text, count=count, **derived)

    return render


HEAD = 'data: {"id":"cmpl-803e0748","object":"text_completion","created":1795252819,"model":"/m/llama-2-7b","choices":['
CHAT = HEAD.replace("text_completion", "chat.completion.chunk")
ENDS = ',"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]'
USAGE = ',"usage":{"prompt_tokens":16,"total_tokens":$total,"completion_tokens":$count'
CACHED = ',"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":null}}\n\n'
REASONED = ',"completion_tokens_details":{"reasoning_tokens":$count}}}\n\n'
TIMINGS = '"timings":{"cache_n":2,"prompt_ms":0.269,"predicted_n":$count,"predicted_ms":$share}'

vllm = event(HEAD + '{"index":0,"text":$text' + ENDS + "}\n\n")
vllm_counted = event(HEAD + '{"index":0,"text":$text' + ENDS + USAGE + "}}\n\n")
vllm_cached = event(HEAD + '{"index":0,"text":$text' + ENDS + USAGE + CACHED)
vllm_chat = event(CHAT + '{"index":0,"delta":{"content":$text},"finish_reason":null,"token_ids":null}]}\n\n')
vllm_reasoning = event(CHAT + '{"index":0,"delta":{"reasoning":$text},"finish_reason":null}]' + USAGE + REASONED)
llama_cpp = event(
    'data: {"choices":[{"text":$text,"index":0,"finish_reason":null}],"id":"c$count",' + TIMINGS + "}\n\n"
)
tgi = event(
    'data:{"object":"text_completion","id":"","created":$count,"model":"m",'
    '"choices":[{"index":0,"logprobs":null,"finish_reason":"","text":$text}]}\r\n\r\n'
)
several_choices = event('data: {"choices": [{"index": $choice, "text": $text}], "usage": null}\n\n')
responses = event(
    'event: response.output_text.delta\ndata: {"content_index":0,"delta":$text,"item_id":"msg_a3","logprobs":[],'
    '"output_index":0,"sequence_number":$count,"type":"response.output_text.delta"}\n\n'
)
openai_responses = event(
    'event: response.reasoning_text.delta\ndata: {"type":"response.reasoning_text.delta","sequence_number":$count,'
    '"item_id":"rs_1","delta":$text,"obfuscation":"x$count"}\n\n'
)
llama_cpp_own = event(
    'data: {"index":0,"content":$text,"tokens":[$id],"stop":false,'
    '"id_slot":-1,"tokens_predicted":$count,"tokens_evaluated":3}\n\n'
)
triton = event('data: {"model_name":"ensemble","model_version":"1","text_output":$text}\n\n')
triton_ensemble = event(
    'data: {"model_name":"ensemble","cum_log_probs":$log,"output_log_probs":[0.0,0.0],"sequence_end":false,'
    '"text_output":$text}\n\n'
)
tgi_own = event(
    'data:{"index":$count,"token":{"id":$count,"text":$text,"logprob":-$share,"special":false},'
    '"generated_text":null,"details":null}\n\n'
)
mii_own = event('data: {"text": [$text]}\n\n')

Renders = Sequence[Render]
COMPLETIONS: Renders = (vllm, vllm_counted, vllm_cached, llama_cpp, tgi, several_choices)
CHATS: Renders = (vllm_chat, vllm_reasoning)
RESPONSES: Renders = (responses, openai_responses)
LLAMA_CPP: Renders = (llama_cpp_own,)
TRITON: Renders = (triton, triton_ensemble)
TGI: Renders = (tgi_own,)
MII: Renders = (mii_own,)
