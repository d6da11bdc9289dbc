"""From the options of `servetop serve` to a server of the simulator."""

from __future__ import annotations

import os

from servetop.cli.options.serve_options import ServedOptions, ServeOptions
from servetop.engines.control.api_key import key_from
from servetop.simulator.dialects.server_dialect import EmulationOptions
from servetop.simulator.serve import ServerSettings, serve


def serve_simulator(options: ServeOptions) -> int:
    """Serve until a signal, and return the exit code; UsageError for options that do not fit together."""
    return serve(server_settings(options))


def server_settings(options: ServeOptions) -> ServerSettings:
    """Return the settings of the server; UsageError for an API key that is not set."""
    served, emulated = options.served, options.emulated
    return ServerSettings(
        host=options.host,
        port=options.port,
        model=served.model,
        served_model_name=options.served_model_name,
        lora_modules=options.lora_modules,
        gpu=served.gpu,
        dialect=emulated.dialect,
        engine_profile=served.engine_profile,
        simulation=_simulation(served),
        emulated=EmulationOptions(
            metrics=not emulated.no_metrics,
            metrics_port=emulated.metrics_port,
            max_concurrent_requests=emulated.max_concurrent_requests,
            per_request_metrics=emulated.enable_per_request_metrics,
            api_key=key_from(options.api_key_env, os.environ, option="--api-key-env") or "",
        ),
        seed=served.seed,
    )


def _simulation(served: ServedOptions) -> dict[str, object]:
    """Return what is given beside the profiles, by the keys of `simulator.model.settings`."""
    values = {
        "policy": served.policy,
        "max_num_seqs": served.max_num_seqs,
        "kv_blocks": served.kv_blocks,
        "block_size": served.block_size,
        "max_model_len": served.max_model_len,
        "tensor_parallel": served.tensor_parallel,
        "time_scale": served.time_scale,
    }
    return {key: value for key, value in values.items() if value is not None}
