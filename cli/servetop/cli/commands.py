"""The commands. Each imports what it needs when it runs, so that `--help` stays fast."""

from __future__ import annotations

from typing import Any

from servetop.cli.framework.click_commands import CommandGroup, CommandSpec
from servetop.cli.framework.command_line import CommandLine
from servetop.cli.framework.help_pages import HELP_WIDTH
from servetop.cli.options.audit_options import AuditOptions
from servetop.cli.options.check_options import CheckOptions
from servetop.cli.options.compare_options import CompareOptions
from servetop.cli.options.doctor_options import DoctorOptions
from servetop.cli.options.pairs_options import RunPairsOptions
from servetop.cli.options.predict_options import PredictOptions
from servetop.cli.options.reconcile_options import ReconcileOptions
from servetop.cli.options.run_options import AttachOptions, ReplayOptions, RerunOptions, RunOptions, SweepOptions
from servetop.cli.options.search_options import REFUSED, SearchOptions
from servetop.cli.options.serve_options import ServeOptions
from servetop.cli.options.shape_options import ShapeOptions
from servetop.cli.options.tool_options import (
    DatasetOptions,
    EnginesOptions,
    ExportOptions,
    ImportOptions,
    JsonOptions,
    ListOptions,
    ManifestOptions,
    PlotOptions,
    ReportOptions,
    StopOptions,
    SummaryOptions,
    VerifyOptions,
)
from servetop.cli.options.watch_options import REFUSED_BY_WATCHES, WatchOptions


def run(line: CommandLine[RunOptions]) -> int:
    """Start or attach to an engine, send load to it, show and record it."""
    if line.options.version:
        from servetop.run.console import out
        from servetop.run.manifest.versions import servetop_version

        out(f"servetop {servetop_version()}")
        return 0
    from servetop.cli.configuration.configure import run_config
    from servetop.cli.launch import launch, output_of
    from servetop.cli.options.config_file import with_config_file

    options, file = with_config_file(line.given)
    return launch(run_config(options, line.invocation.engine_args, file), output_of(options, line))


def sweep(line: CommandLine[SweepOptions]) -> int:
    """Measure a grid of loads, requests and batch sizes, cell by cell, in one recording."""
    from servetop.cli.sweep_command import measure_grid

    return measure_grid(line)


def search(line: CommandLine[SearchOptions]) -> int:
    """Find the largest load within objectives, in one continuous run; exit code 98 if the budget is too short."""
    from servetop.cli.search.search_command import run_search

    return run_search(line)


def run_pairs(line: CommandLine[RunPairsOptions]) -> int:
    """Measure two configurations alternately until their difference is known; exit code 98 if it is not."""
    from servetop.cli.pairs.pairs_command import measure_pairs

    return measure_pairs(line)


def watch(line: CommandLine[WatchOptions]) -> int:
    """Watch a server under the load of other clients, by its own metrics: nothing is sent."""
    from servetop.cli.watch.watch_command import run_watch

    return run_watch(line)


def ps(line: CommandLine[JsonOptions]) -> int:
    """List the active runs: id, engine, age, state, recording."""
    from servetop.cli.viewing.live_runs import print_runs

    return print_runs(as_json=line.options.as_json)


def stop(line: CommandLine[StopOptions]) -> int:
    """Stop a run: let its requests finish, stop its engine, wait; exit code 1 if it is still active then."""
    from servetop.cli.viewing.live_runs import stop_run

    return stop_run(line.options.run, now=line.options.now, timeout=line.options.timeout)


def attach(line: CommandLine[AttachOptions]) -> int:
    """Open the dashboard on an active run; the run continues after the dashboard is closed."""
    from servetop.cli.viewing.live_runs import attach_run

    return attach_run(line.options.run, line.options.display)


def replay(line: CommandLine[ReplayOptions]) -> int:
    """Open the dashboard on a recording, or on the list of all; a recording still being written is followed live."""
    from servetop.cli.viewing.dashboard import replay_recording

    if line.options.web.web:
        from servetop.cli.web.web import serve_named

        return serve_named(line.options.file or "latest", line.options.web, line.options.display)
    return replay_recording(line.options.file, line.options.display, read_only=line.options.read_only)


def summary(line: CommandLine[SummaryOptions]) -> int:
    """Print the summary of a recording."""
    from servetop.cli.report.report import print_of_options

    return print_of_options(line.options)


def report(line: CommandLine[ReportOptions]) -> int:
    """Write a recording, or the comparison of two, as one HTML file that works offline, or as Markdown."""
    from servetop.cli.report.report_file import run_report

    return run_report(line.options)


def plot(line: CommandLine[PlotOptions]) -> int:
    """Draw the charts of a recording as text, for ssh and CI logs."""
    from servetop.cli.report.plot_text import print_plots

    return print_plots(line.options)


def export(line: CommandLine[ExportOptions]) -> int:
    """Write a recording in the format of another tool, or as a table of its requests, ticks, stages or samples."""
    from servetop.cli.report.export_file import run_export

    return run_export(line.options)


def import_(line: CommandLine[ImportOptions]) -> int:
    """Write results of vLLM, AIPerf, guidellm and other clients as recordings: replay, summarise, report, compare."""
    from servetop.cli.report.import_file import run_import

    return run_import(line.options)


def rerun(line: CommandLine[RerunOptions]) -> int:
    """Repeat the run of a recording; options override it. Exit code 2 if something that it needs is missing here."""
    from servetop.cli.launch import output_of
    from servetop.cli.rerun_command import run_rerun

    options, output = line.options, output_of(line.options, line)
    return run_rerun(options, line.given, engine_args=line.invocation.engine_args, output=output)


def manifest(line: CommandLine[ManifestOptions]) -> int:
    """Print what identifies a recorded run: versions, command lines, environment, GPUs, digests of model and data."""
    from servetop.cli.inspection.manifest_report import print_manifest

    return print_manifest(line.options.file, as_json=line.options.as_json)


def compare(line: CommandLine[CompareOptions]) -> int:
    """Compare recordings: which metrics are better or worse, by how much, or what it takes to tell."""
    from servetop.cli.inspection.compare import run_compare

    return run_compare(line.options)


def reconcile(line: CommandLine[ReconcileOptions]) -> int:
    """Explain why two load generators print different figures of one server: definitions, load, workload, client."""
    from servetop.cli.inspection.reconcile import run_reconcile

    return run_reconcile(line.options)


def verify(line: CommandLine[VerifyOptions]) -> int:
    """Check recordings for damage; exit code 1 if one is damaged, 2 if a file is not a recording."""
    from servetop.cli.inspection.verify_report import run_verify

    return run_verify(list(line.options.files), as_json=line.options.as_json)


def check(line: CommandLine[CheckOptions]) -> int:
    """Check a run for CI: against a baseline, thresholds and rules; exit code 99 if it fails, 98 if it cannot tell."""
    from servetop.cli.inspection.check import run_check

    return run_check(line.options)


def ls(line: CommandLine[ListOptions]) -> int:
    """List the recordings, newest first."""
    from servetop.cli.inspection.recordings_list import print_recordings

    return print_recordings(line.options.folder, as_json=line.options.as_json)


def engines(line: CommandLine[EnginesOptions]) -> int:
    """List the engines: which are installed, what each reports, how to install the others."""
    from servetop.cli.inspection.engines_table import print_engines

    return print_engines(line.options.name, as_json=line.options.as_json)


def dataset(line: CommandLine[DatasetOptions]) -> int:
    """Show what a run would send of a dataset: how it is read, lengths, shared prefixes, what is left out."""
    from servetop.cli.inspection.dataset_table import print_dataset

    return print_dataset(line.options)


def shape(line: CommandLine[ShapeOptions]) -> int:
    """Write the load in logs of gateways or servers as a trace to replay: times and lengths, without any text."""
    from servetop.cli.shape.shape_command import run_shape

    return run_shape(line.options)


def doctor(line: CommandLine[DoctorOptions]) -> int:
    """Check this machine, or the server at URL; exit code 1 if something must be fixed, 3 if no endpoint answers."""
    from servetop.cli.doctor.doctor_command import examine_machine_or_server

    return examine_machine_or_server(line.options, line.given)


def predict(line: CommandLine[PredictOptions]) -> int:
    """Predict batch sizes and rates of any load (--dataset-name) with the simulator, in virtual time."""
    from servetop.cli.predict_command import run_predict

    return run_predict(line.options)


def validate(line: CommandLine[JsonOptions]) -> int:
    """Compare the simulator with published measurements; exit code 99 if it misses a target."""
    from servetop.cli.predict_command import run_validate

    return run_validate(as_json=line.options.as_json)


def serve(line: CommandLine[ServeOptions]) -> int:
    """Run the simulator as a standalone OpenAI-compatible server."""
    from servetop.cli.configuration.server_settings import serve_simulator

    return serve_simulator(line.options)


def audit(line: CommandLine[AuditOptions]) -> int:
    """Run another load generator against the simulator, and print the errors of its figures; its command follows --."""
    from servetop.cli.audit.audit_command import run_audit

    return run_audit(line.options, line.invocation.engine_args)


COMMANDS: tuple[CommandSpec[Any], ...] = (
    CommandSpec(sweep, SweepOptions),
    CommandSpec(search, SearchOptions, refused=REFUSED),
    CommandSpec(rerun, RerunOptions),
    CommandSpec(run_pairs, RunPairsOptions),
    CommandSpec(watch, WatchOptions, refused=REFUSED_BY_WATCHES),
    CommandSpec(ps, JsonOptions),
    CommandSpec(stop, StopOptions),
    CommandSpec(attach, AttachOptions),
    CommandSpec(replay, ReplayOptions),
    CommandSpec(summary, SummaryOptions),
    CommandSpec(report, ReportOptions),
    CommandSpec(plot, PlotOptions),
    CommandSpec(export, ExportOptions),
    CommandSpec(import_, ImportOptions),
    CommandSpec(manifest, ManifestOptions),
    CommandSpec(compare, CompareOptions),
    CommandSpec(reconcile, ReconcileOptions),
    CommandSpec(verify, VerifyOptions),
    CommandSpec(check, CheckOptions),
    CommandSpec(ls, ListOptions),
    CommandSpec(engines, EnginesOptions),
    CommandSpec(dataset, DatasetOptions),
    CommandSpec(shape, ShapeOptions),
    CommandSpec(doctor, DoctorOptions),
    CommandSpec(predict, PredictOptions),
    CommandSpec(validate, JsonOptions),
    CommandSpec(serve, ServeOptions, independent=True),
    CommandSpec(audit, AuditOptions, independent=True),
)
"""In the order of the help page."""


def command_group() -> CommandGroup:
    """Return the command line of servetop."""
    return CommandGroup(
        CommandSpec(run, RunOptions),
        COMMANDS,
        name="servetop",
        help="top for LLM serving under load: start or attach to an engine, send load to it, watch it, record it, "
        "replay it.\n\nWithout a command: run. Arguments after -- go to the engine's own command line.",
        epilog="servetop --engine vllm --model llama-2-7b · servetop --url http://gpu7:8000 · servetop replay latest",
        subcommand_metavar="COMMAND [ARGS]...",
        context_settings=HELP_WIDTH,
    )
