"""What a manifest has of an engine's environment and command line."""

import pytest

from servetop.run.manifest.engine_variables import engine_variables, stable_argv


def test_variables_that_affect_an_engine_are_kept_without_ids_of_devices() -> None:
    environment = {
        "VLLM_USE_V1": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1",
        "NVIDIA_VISIBLE_DEVICES": "MIG-GPU-8932f937/1/2", "HOME": "/home/me", "MYTORCH_X": "1", "OMP_NUM_THREADS": "4",
    }  # fmt: skip
    assert engine_variables(environment) == {
        "CUDA_VISIBLE_DEVICES": "GPU-{id},1",
        "HF_HUB_OFFLINE": "1",
        "NVIDIA_VISIBLE_DEVICES": "MIG-GPU-{id}",
        "OMP_NUM_THREADS": "4",
        "VLLM_USE_V1": "1",
    }


@pytest.mark.parametrize(
    ("argv", "stable"),
    [
        ("vllm serve m --port 8123 --max-num-seqs 8123", "vllm serve m --port {port} --max-num-seqs 8123"),
        ("x --grpc_port=9 --port=8123 -p 8123", "x --grpc_port={port} --port={port} -p 8123"),
        ("x --metrics-port 9000", "x --metrics-port {port}"),
        (
            "docker run --name servetop-41-8123 -p 127.0.0.1:8123:8123 image",
            "docker run --name servetop-41-{port} -p 127.0.0.1:{port}:{port} image",
        ),
        ("x --support 8", "x --support 8"),
    ],
)
def test_ports_are_replaced_by_a_placeholder(argv: str, stable: str) -> None:
    assert stable_argv(argv.split(), port=8123) == stable.split()
