"""Events of a stream as each server writes them, made from a text and a number."""

from collections.abc import Callable, Sequence

Render = Callable[[str, int], str]
"""An event from its text (as JSON has it, quotes and all) and a number that goes up."""

VLLM_ENDS = ',"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]'
HEAD = 'data: {"id":"cmpl-803e0748","object":"text_completion","created":1795252819,"model":"/m/llama-2-7b","choices":['
CHAT = HEAD.replace("text_completion", "chat.completion.chunk")


def usage(count: int) -> str:
    return f',"usage":{{"prompt_tokens":16,"total_tokens":{16 + count},"completion_tokens":{count}'


def vllm(text: str, _: int) -> str:
    return f'{HEAD}{{"index":0,"text":{text}{VLLM_ENDS}}}\n\n'


def vllm_counted(text: str, count: int) -> str:
    return f'{HEAD}{{"index":0,"text":{text}{VLLM_ENDS}{usage(count)}}}}}\n\n'


def vllm_cached(text: str, count: int) -> str:
    details = ',"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":null}}\n\n'
    return f'{HEAD}{{"index":0,"text":{text}{VLLM_ENDS}{usage(count)}{details}'


def vllm_chat(text: str, _: int) -> str:
    return f'{CHAT}{{"index":0,"delta":{{"content":{text}}},"finish_reason":null,"token_ids":null}}]}}\n\n'


def vllm_reasoning(text: str, count: int) -> str:
    details = f',"completion_tokens_details":{{"reasoning_tokens":{count}}}}}}}\n\n'
    return f'{CHAT}{{"index":0,"delta":{{"reasoning":{text}}},"finish_reason":null}}]{usage(count)}{details}'


def llama_cpp(text: str, count: int) -> str:
    timings = f'"timings":{{"cache_n":2,"prompt_ms":0.269,"predicted_n":{count},"predicted_ms":{count / 7}}}'
    return f'data: {{"choices":[{{"text":{text},"index":0,"finish_reason":null}}],"id":"c{count}",{timings}}}\n\n'


def tgi(text: str, count: int) -> str:
    token = f'"index":0,"logprobs":null,"finish_reason":"","text":{text}'
    return f'data:{{"object":"text_completion","id":"","created":{count},"model":"m","choices":[{{{token}}}]}}\r\n\r\n'


def several_choices(text: str, count: int) -> str:
    return f'data: {{"choices": [{{"index": {count % 3}, "text": {text}}}], "usage": null}}\n\n'


def responses(text: str, count: int) -> str:
    ends = f'"item_id":"msg_a3","logprobs":[],"output_index":0,"sequence_number":{count}'
    kind = '"type":"response.output_text.delta"'
    return f'event: response.output_text.delta\ndata: {{"content_index":0,"delta":{text},{ends},{kind}}}\n\n'


def openai_responses(text: str, count: int) -> str:
    kind = f'"type":"response.reasoning_text.delta","sequence_number":{count},"item_id":"rs_1"'
    return f'event: response.reasoning_text.delta\ndata: {{{kind},"delta":{text},"obfuscation":"x{count}"}}\n\n'


def llama_cpp_own(text: str, count: int) -> str:
    counts = f'"id_slot":-1,"tokens_predicted":{count},"tokens_evaluated":3'
    return f'data: {{"index":0,"content":{text},"tokens":[{7 * count}],"stop":false,{counts}}}\n\n'


def triton(text: str, _: int) -> str:
    return f'data: {{"model_name":"ensemble","model_version":"1","text_output":{text}}}\n\n'


def triton_ensemble(text: str, count: int) -> str:
    scores = f'"cum_log_probs":{-count / 3},"output_log_probs":[0.0,0.0],"sequence_end":false'
    return f'data: {{"model_name":"ensemble",{scores},"text_output":{text}}}\n\n'


def tgi_own(text: str, count: int) -> str:
    token = f'"token":{{"id":{count},"text":{text},"logprob":-{count / 7},"special":false}}'
    return f'data:{{"index":{count},{token},"generated_text":null,"details":null}}\n\n'


def mii_own(text: str, _: int) -> str:
    return f'data: {{"text": [{text}]}}\n\n'


Renders = Sequence[Render]
COMPLETIONS: Renders = (vllm, vllm_counted, vllm_cached, llama_cpp, tgi, several_choices)
CHATS: Renders = (vllm_chat, vllm_reasoning)
RESPONSES: Renders = (responses, openai_responses)
LLAMA_CPP: Renders = (llama_cpp_own,)
TRITON: Renders = (triton, triton_ensemble)
TGI: Renders = (tgi_own,)
MII: Renders = (mii_own,)
