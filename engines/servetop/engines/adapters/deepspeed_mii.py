"""DeepSpeed-FastGen: `python -m mii.entrypoints.openai_api_server --model MODEL`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.adapters.engine_flags import flag_value, reachable, with_flags
from servetop.engines.adapters.launch_argv import module_argv, safe_path
from servetop.engines.adapters.model_names import resolve_model
from servetop.engines.control.control_client import HttpResults
from servetop.engines.dialects.dialect_registry import TEXT_ENDPOINTS
from servetop.engines.engine import Engine, LaunchCommand
from servetop.engines.process.startup_failures import HUB_FAILURES, KnownFailure

SERVER = "mii.entrypoints.openai_api_server"


class DeepSpeedMiiEngine(Engine):
    """Version 0.3, tested only against the emulated API (docs/engines/deepspeed-mii.md)."""

    name = "deepspeed-mii"
    title = "DeepSpeed-MII"
    probe_paths: Sequence[str] = ("/v1/models",)
    takes_token_ids = False
    endpoints: Mapping[str, str] = {**TEXT_ENDPOINTS, "generate": "servetop.engines.dialects.mii_generate:MiiDialect"}
    batch_size_help = "only the ragged-batch settings of its Python API limit a batch: limit --max-concurrency instead"
    package = "deepspeed-mii"
    install_help = "pip install deepspeed-mii, or --engine-command for a python that has it"
    stop_grace_period = 20.0
    failures = (
        *HUB_FAILURES,
        KnownFailure.of(
            r"error: (?P<what>unrecognized arguments: .+|argument .+)", "MII rejects its command line: {what}"
        ),
        KnownFailure.of(r"(?P<what>server crashed for some reason.*)", "its model server died while loading: {what}"),
        KnownFailure.of(r"Unsupported model type (?P<model>\S+)", "MII cannot serve models of type {model}"),
    )

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """EngineError when MII is not installed; UsageError for a batch size, which its command line cannot set."""
        if config.max_num_seqs is not None:
            raise UsageError(f"DeepSpeed-MII has no option for a batch size ({self.batch_size_help})")
        extra = config.extra_args
        flags = {
            "--model": None if flag_value(extra, "--model") else self.resolve_model(config.model),
            "--host": "127.0.0.1",
            "--port": port,
        }
        argv = module_argv(config, SERVER, title=self.title, how=self.install_help)
        return LaunchCommand(
            argv=(*argv, *with_flags(extra, flags)),
            env=safe_path(argv, config),
            host=reachable(flag_value(extra, "--host")),
            port=port,
        )

    def resolve_model(self, model: str) -> str:
        return resolve_model(model)

    def match_score(self, results: HttpResults) -> int:
        """Match the `owned_by` field of its models; its other server, which has only `/generate`, must be named."""
        models = results.get("/v1/models")
        return 2 if models is not None and models.ok and b'"deepspeed-mii"' in models.body else 0
