"""The reason of a failed start is found in the log."""

from servetop.engines.process.startup_failures import (
    COMMON_FAILURES,
    HUB_FAILURES,
    error_text,
    first_error,
    known_failure,
    last_error,
)


def test_a_known_failure_fills_the_names_of_its_pattern() -> None:
    lines = ["Traceback", "ModuleNotFoundError: No module named 'torch.cuda'"]
    reason = known_failure(lines, COMMON_FAILURES)
    assert reason == "the Python package torch.cuda is missing in its environment"


def test_a_known_failure_ignores_case_and_quotes_the_error_without_its_class() -> None:
    reason = known_failure(["torch.OutOfMemoryError: cuda OUT OF MEMORY. Tried 2 GiB"], COMMON_FAILURES) or ""
    assert reason.endswith("(cuda OUT OF MEMORY. Tried 2 GiB)")


def test_a_missing_model_is_named_from_the_url() -> None:
    line = "Repository Not Found for url: https://hub.test/api/models/acme/tiny/revision/main."
    assert "no such model acme/tiny:" in (known_failure([line], HUB_FAILURES) or "")


def test_an_ordinary_log_has_no_failure() -> None:
    lines = ["INFO: loading", "INFO: ready"]
    assert known_failure(lines, COMMON_FAILURES) is first_error(lines) is last_error(lines) is None


def test_the_first_and_the_last_error_of_a_log_are_found() -> None:
    lines = ["OSError: a", "  at x", "RuntimeError: b"]
    assert (first_error(lines), last_error(lines)) == ("OSError: a", "RuntimeError: b")


def test_a_validation_error_is_replaced_by_its_field_and_detail() -> None:
    lines = ["pydantic.ValidationError: 1 validation error for Args", "seed", "  Value error, too low [type=x]"]
    assert first_error(lines) == "Args.seed: too low"


def test_a_long_reason_is_cut() -> None:
    reason = last_error(["ValueError: " + "no " * 1000]) or ""
    assert reason.endswith("no…")
    assert len(reason) < 500


def test_the_text_of_a_line_without_an_error_is_the_line() -> None:
    assert error_text("  plain  ") == "plain"
