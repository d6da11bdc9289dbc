"""GPU memory is counted for the processes of the engine only."""

import os

from servetop.engines.gpu.gpu_processes import OwnPids, any_process, in_tree, owned_memory


def test_memory_is_summed_over_own_processes_with_a_known_size() -> None:
    held = [(1, 10), (2, 20), (3, None), (9, 40)]
    assert owned_memory(held, lambda pid: pid < 9) == 30
    assert owned_memory(held, any_process) == 70


def test_memory_is_unknown_if_no_process_is_the_engines() -> None:
    assert owned_memory([(1, 10)], lambda _: False) is None
    assert owned_memory([], any_process) is None


def test_a_process_is_in_its_own_tree_and_in_its_parents() -> None:
    assert in_tree(os.getpid(), os.getpid())
    assert in_tree(os.getpid(), os.getppid())
    assert not in_tree(os.getppid(), os.getpid())


def test_following_another_leader_forgets_the_known_processes() -> None:
    own = OwnPids()
    own.follow(os.getpid())
    assert own(os.getpid())
    own.follow(None)
    assert not own(os.getpid())
