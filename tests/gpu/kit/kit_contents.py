"""What the kit carries: vLLM, the packages that the GPU machine lacks, and what of them is left out."""
import re

VLLM = "vllm==0.22.1"

# What the machine lacks, pinned to what was tested against vLLM 0.22.1.
# (openai 3.x, anthropic 1.x/2.x, mcp 2.x and starlette 1.x came out after it.)
CARRY = """
annotated-types==0.8.0
anthropic==0.125.0
apache-tvm-ffi==0.1.15.post2
astor==0.8.1
blake3==1.0.11
cachetools==7.3.2
cbor2==6.2.1
compressed-tensors==0.15.0.1
depyf==0.20.0
dill==0.4.1
diskcache==5.6.3
distro==1.9.0
docstring-parser==0.18.0
fastapi==0.136.3
gguf==0.19.0
httpx-sse==0.4.3
ijson==3.6.0
interegular==0.3.3
jiter==0.19.0
jmespath==1.1.0
jsonschema==4.26.0
jsonschema-specifications==2025.9.1
lark==1.2.2
llguidance==1.7.6
lm-format-enforcer==0.11.3
loguru==0.7.3
mcp==1.30.0
mistral-common==1.11.7
model-hosting-container-standards==0.1.16
msgspec==0.22.0
openai==2.54.0
openai-harmony==0.0.8
outlines-core==0.2.14
partial-json-parser==0.2.1.1.post7
prometheus-fastapi-instrumentator==7.1.0
pybase64==1.5.1
pycountry==26.2.16
pydantic==2.13.5
pydantic-core==2.46.5
pydantic-extra-types==2.11.1
pydantic-settings==2.16.3
pyjwt==2.15.1
python-dotenv==1.2.4
python-json-logger==4.2.0
python-multipart==0.0.34
pyzmq==27.3.0
referencing==0.37.0
rpds-py==2026.9.1
setproctitle==1.3.8
sniffio==1.3.1
sse-starlette==3.7.0
starlette==0.52.1
supervisor==4.3.0
typing-extensions==4.16.0
typing-inspection==0.4.5
uvicorn==0.49.0
watchfiles==1.3.0
xgrammar==0.2.8
""".split()

PLATFORMS = [f"manylinux_2_{n}_x86_64" for n in (39, 35, 34, 31, 28, 27, 26, 24, 17, 5)] + [
    "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]

# Members of the vLLM wheel that a dense model on Hopper never loads.  Each
# import is guarded in vLLM (checked with 0.22.1); --keep NAME keeps one.
DROP_VLLM = {
    "fa2": r"vllm/vllm_flash_attn/_vllm_fa2_C\.",      # FlashAttention 2: FA3 is used on sm_90
    "moe": r"vllm/_moe_C\.",                            # mixture-of-experts kernels
    "rust": r"vllm/vllm-rs$",                          # Rust front end, off by default
    "flashmla": r"vllm/(_flashmla|third_party/flashmla)",  # DeepSeek MLA
    "deepgemm": r"vllm/third_party/deep_gemm/",        # fp8 MoE
    "cute": r"vllm/vllm_flash_attn/cute/(?!interface\.py$|__init__\.py$).*sm1\d\d",  # Blackwell
    "swagger": r"vllm/entrypoints/serve/instrumentator/static/.*\.(js|css)$",
    "pictures": r"vllm/.*\.(jpg|png|svg|md)$",
}
DROP_DEPS = re.compile(
    r"^(mistral_common/data/|pycountry/locales/|pycountry/tests/|supervisor/tests/|"
    r"tvm_ffi/(3rdparty|include|src|share)/|"
    r"lark/__pyinstaller/|zmq/tests/|openai/cli/|openai/resources/.*\.pyi$)|"
    r"\.(pyx|pxd|c|cc|cpp|h|hpp|map)$")
