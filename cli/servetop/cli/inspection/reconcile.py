"""`servetop reconcile`: why two load generators print different figures of one server."""

from __future__ import annotations

from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.inspection.reconcile_text import reconciliation_parts
from servetop.cli.options.reconcile_options import ReconcileOptions
from servetop.cli.tables import out_tables
from servetop.core.errors import ExitCode
from servetop.run import console
from servetop.run.reconcile.reconcile_report import reconcile_files
from servetop.run.reconcile.reconcile_schema import VERSION


def run_reconcile(options: ReconcileOptions) -> int:
    """Print the steps between the figures of two results; OK, whatever they are."""
    report = reconcile_files(options.a, options.b, truths=(options.truth_a, options.truth_b))
    if options.as_json:
        console.out_json({"schema_version": VERSION, **plain_object(report)})
    else:
        out_tables(*reconciliation_parts(report))
    return int(ExitCode.OK)
