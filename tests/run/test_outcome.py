"""The outcome of a run, from the reports of its senders."""

from servetop.run.outcome import Outcome


def test_a_dead_sender_fails_the_run_and_is_its_last_line() -> None:
    outcome = Outcome(max_failures="100%")
    outcome.take([], deaths=["sender 1 died (exit code -9): 0 requests in flight are lost"])
    outcome.take([])
    end = outcome.end(3.0, None)
    assert (end.exit_code, end.reason) == (1, "sender 1 died (exit code -9): 0 requests in flight are lost")


def test_a_run_without_dead_senders_succeeds() -> None:
    outcome = Outcome()
    outcome.take([])
    assert outcome.end(3.0, None).exit_code == 0
