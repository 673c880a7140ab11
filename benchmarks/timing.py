"""Timing: actions that are compared take turns, so that a change of the machine's speed affects all of them;
loads run in parallel threads.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def in_turns(
    actions: dict[str, Callable[[], Any]], times: int, *, warm_up: int = 0
) -> dict[str, list[float]]:
    """The duration of each call of each action, in seconds, without the first `warm_up` turns."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(-warm_up, times):
        for name, action in actions.items():
            begun = time.perf_counter()
            action()
            if turn >= 0:
                seconds[name].append(time.perf_counter() - begun)
    return seconds


def side_by_side(threads: int, ready: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> float:
    """The time in seconds that `threads` threads together need for `items`. Each thread gets its action from
    `ready` before the clock starts.
    """
    left = iter(list(items))
    start = threading.Barrier(threads + 1)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            action = ready()
            start.wait()
            for item in left:  # a list's iterator gives each item to one thread
                action(item)
        except BaseException as problem:
            failures.append(problem)
            start.abort()

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):  # `failures` has the reason
        start.wait()
    begun = time.perf_counter()
    for thread in running:
        thread.join()
    seconds = time.perf_counter() - begun
    if failures:
        raise failures[0]
    return seconds


def p50(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


def p95(seconds: Sequence[float]) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.95))]
