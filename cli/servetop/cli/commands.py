"""The commands. Each imports what it needs when it runs, so that `--help` stays quick."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from servetop.cli.framework.command_classes import HELP_SETTINGS, PlainCommand, PlainGroup
from servetop.cli.invocation import invocation_of
from servetop.cli.options import arguments as a
from servetop.cli.options import connection_options as c
from servetop.cli.options import options as o
from servetop.cli.options import workload_options as w
from servetop.cli.options.completions import ServeCommand
from servetop.cli.recording_commands import ls, summary, verify
from servetop.cli.run_commands import add_run_commands

app = typer.Typer(
    name="servetop",
    help="top for LLM serving under load: start or attach to an engine, drive it, watch it, record it, replay it.\n\n"
    "Without a command: run. What stands after -- goes to the engine's own command line.",
    epilog="servetop --engine vllm --model llama-2-7b · servetop --url http://gpu7:8000 · servetop replay latest",
    cls=PlainGroup,
    rich_markup_mode=None,
    invoke_without_command=True,
    context_settings=HELP_SETTINGS,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    engine: o.EngineName = None,
    model: o.Model = None,
    url: o.Url = None,
    front_door: o.FrontDoor = None,
    metrics_url: o.MetricsUrl = None,
    port: o.Port = None,
    max_num_seqs: o.MaxNumSeqs = None,
    engine_command: o.EngineCommand = None,
    launcher: o.Launcher = None,
    image: o.Image = None,
    start_timeout: o.StartTimeout = 1800.0,
    attach_timeout: o.AttachTimeout = 30.0,
    api_key_env: o.ApiKeyEnv = None,
    transport: c.Transport = None,
    proxy: c.Proxy = None,
    ca_cert: c.CaCert = None,
    client_cert: c.ClientCert = None,
    client_key: c.ClientKey = None,
    insecure: c.Insecure = False,
    request_rate: o.RequestRate = None,
    burstiness: o.Burstiness = 1.0,
    max_concurrency: o.MaxConcurrency = None,
    num_prompts: o.NumPrompts = None,
    duration: o.Duration = None,
    ramp: o.Ramp = None,
    arrivals: w.Arrivals = None,
    think_time: w.ThinkTime = None,
    ramp_up_strategy: w.RampUpStrategy = None,
    ramp_up_start_rps: w.RampUpStart = None,
    ramp_up_end_rps: w.RampUpEnd = None,
    num_warmups: w.NumWarmups = 0,
    cooldown: w.CoolDown = None,
    time_scale: w.TimeScale = 1.0,
    jitter: w.Jitter = None,
    dataset_name: w.DatasetName = "random",
    dataset_path: w.DatasetPath = "",
    dataset_column: w.DatasetColumn = "",
    num_turns: w.NumTurns = None,
    lengths: w.Lengths = None,
    range_ratio: w.RangeRatio = 0.0,
    prefix_len: w.PrefixLen = 0,
    num_prefixes: w.NumPrefixes = 1,
    exact_lengths: w.ExactLengths = False,
    tokenizer: w.TokenizerFile = "",
    skip_bad_rows: w.SkipBadRows = False,
    clip_lengths: w.ClipLengths = False,
    workers: o.Workers = "1",
    seed: o.Seed = 0,
    input_len: o.InputLen = 128,
    output_len: o.OutputLen = 128,
    ignore_eos: o.IgnoreEos = True,
    endpoint: o.Endpoint = "",
    temperature: o.Temperature = None,
    extra_body: o.ExtraBody = None,
    header: w.Header = None,
    header_env: w.HeaderEnv = None,
    stream: w.Stream = True,
    n: w.Answers = 1,
    model_mix: w.ModelMix = None,
    cancel_fraction: w.CancelFraction = 0.0,
    timeout: o.Timeout = 600.0,
    goodput: o.Goodput = None,
    metric_percentiles: o.MetricPercentiles = None,
    threshold: o.Threshold = None,
    max_failures: Annotated[str, o.MAX_FAILURES] = "1%",
    record: o.Record = None,
    no_record: o.NoRecord = False,
    store_texts: o.StoreTexts = False,
    headless: o.Headless = False,
    detach: o.Detach = False,
    as_json: o.Json = False,
    theme: o.ThemeName = "",
    reduced_motion: o.ReducedMotion = False,
    web: o.Web = False,
    web_host: o.WebHost = "127.0.0.1",
    web_port: o.WebPort = 8765,
    web_steer: o.WebSteer = False,
    label: o.Label = "",
    metadata: o.Metadata = None,
    config: o.Config = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    """Start or attach to an engine, drive a load, watch and record it."""
    if context.invoked_subcommand is not None:
        return 0
    if version:
        from servetop.run.console import out
        from servetop.run.process.versions import servetop_version

        out(f"servetop {servetop_version()}")
        return 0
    from servetop.cli.configuration.configure import run_config
    from servetop.cli.options.config_file import config_file_of, settled
    from servetop.cli.viewing.display_options import DisplayOptions
    from servetop.cli.viewing.launch import Output, launch

    invocation = invocation_of(context)
    run = run_config(settled(context), invocation.engine_args, config_file_of(context))
    look = DisplayOptions(theme=theme, reduced_motion=reduced_motion)
    address = None
    if web:
        from servetop.cli.web.web import WebAddress

        address = WebAddress(host=web_host, port=web_port, steer=web_steer)
    output = Output(
        record=record, no_record=no_record, headless=headless, detach=detach, as_json=as_json, display=look,
        web=address, sender=invocation.sender,
    )  # fmt: skip
    return launch(run, output)


@app.command(cls=PlainCommand)
def sweep(
    context: typer.Context,
    file: a.SweepName = "",
    engine: o.EngineName = None,
    model: o.Model = None,
    url: o.Url = None,
    engine_command: o.EngineCommand = None,
    api_key_env: o.ApiKeyEnv = None,
    max_failures: Annotated[Optional[str], o.MAX_FAILURES] = None,
    record: o.Record = None,
    headless: o.Headless = False,
    detach: o.Detach = False,
    as_json: o.Json = False,
    resume: o.Resume = False,
    theme: o.ThemeName = "",
    reduced_motion: o.ReducedMotion = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a sweep file with comments, and do nothing.")
    ] = False,
) -> int:
    """Measure a grid of batch sizes and request rates, cell by cell, in one recording."""
    from servetop.cli.sweep_command import run_sweep
    from servetop.cli.viewing.display_options import DisplayOptions
    from servetop.cli.viewing.launch import Output
    from servetop.run.sweep.presets import example_sweep

    if example:
        from servetop.run.console import out

        out(*example_sweep().splitlines())
        return 0
    given = {"engine": engine, "model": model, "url": url, "api_key_env": api_key_env, "engine_command": engine_command}
    look = DisplayOptions(theme=theme, reduced_motion=reduced_motion)
    invocation = invocation_of(context)
    output = Output(
        record=record, headless=headless, detach=detach, as_json=as_json, display=look, sender=invocation.sender
    )
    return run_sweep(
        file, given, engine_args=invocation.engine_args, max_failures=max_failures, output=output, resume=resume
    )


add_run_commands(app)


@app.command(cls=PlainCommand)
def replay(
    file: a.RecordingOrNone = None,
    theme: o.ThemeName = "",
    reduced_motion: o.ReducedMotion = False,
    read_only: o.ReadOnly = False,
    web: o.Web = False,
    web_host: o.WebHost = "127.0.0.1",
    web_port: o.WebPort = 8765,
    web_steer: o.WebSteer = False,
) -> int:
    """Open the dashboard on a recording, or on the list of all; one that still grows is followed live."""
    from servetop.cli.viewing.dashboard import replay_recording
    from servetop.cli.viewing.display_options import DisplayOptions

    look = DisplayOptions(theme=theme, reduced_motion=reduced_motion)
    if web:
        from servetop.cli.web.web import WebAddress, serve_recording
        from servetop.recordings.library.catalog import resolve

        return serve_recording(
            resolve(file or "latest"), WebAddress(host=web_host, port=web_port, steer=web_steer), look
        )
    return replay_recording(file, look, read_only=read_only)


for command in (summary, verify, ls):
    app.command(cls=PlainCommand)(command)


@app.command(cls=PlainCommand)
def engines(
    name: a.OneEngine = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """List the engines: which are here, what each tells, how to get the others."""
    from servetop.cli.report.engines_table import print_engines

    return print_engines(name, as_json=as_json)


@app.command(cls=PlainCommand)
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """Look at this machine and say what to fix; exit code 1 when something must be fixed before a run."""
    from servetop.cli.doctor.doctor import run_doctor

    return run_doctor(as_json=as_json)


@app.command(cls=PlainCommand)
def predict(
    file: a.SweepOrNone = None,
    preset: a.Preset = None,
    settings: Annotated[Optional[list[str]], typer.Option("--set", help="KEY=VALUE of the model; repeat.")] = None,
    model: o.Model = None,
    gpu: a.GpuProfile = None,
    engine_profile: a.EngineProfile = None,
    max_num_seqs: Annotated[Optional[str], typer.Option("--max-num-seqs", help="Batch sizes, as 64,128.")] = None,
    request_rate: Annotated[Optional[str], typer.Option("--request-rate", help="Requests/s, as 32,64 or inf.")] = None,
    input_len: Annotated[Optional[int], typer.Option("--input-len", "--random-input-len", min=1)] = None,
    output_len: Annotated[Optional[int], typer.Option("--output-len", "--random-output-len", min=1)] = None,
    num_prompts: o.NumPrompts = None,
    arrivals: Annotated[
        Optional[str], typer.Option("--arrivals", help="burst, spaced, constant, poisson or all-at-once.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Predict a grid of batch sizes and request rates with the simulator, in virtual time."""
    from servetop.cli.predict_command import run_predict
    from servetop.core.errors import UsageError

    if file is not None and preset is not None:
        raise UsageError(f"{file} and --preset {preset}: give one of them")
    options = {
        "model": model, "gpu": gpu, "engine_profile": engine_profile, "max_num_seqs": max_num_seqs,
        "request_rate": request_rate, "input_len": input_len, "output_len": output_len,
        "num_prompts": num_prompts, "arrivals": arrivals,
    }  # fmt: skip
    return run_predict(file or preset, options, settings=settings or (), as_json=as_json)


@app.command(cls=PlainCommand)
def validate(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """Hold the simulator against the published tables; exit code 99 when a target is missed."""
    from servetop.cli.predict_command import run_validate

    return run_validate(as_json=as_json)


@app.command(cls=ServeCommand, context_settings={"ignore_unknown_options": True, "help_option_names": []})
def serve(
    arguments: a.ServerArguments = None,
) -> int:
    """Run the simulator as a standalone OpenAI-compatible server (serve --help lists its options)."""
    from servetop.simulator.server.server import main as serve_simulator

    return serve_simulator(arguments or [])
