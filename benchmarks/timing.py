"""How things are timed: compared ones in turns, so that a drift of the machine meets them all; loads side by
side.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any


def in_turns(
    actions: dict[str, Callable[[], Any]], times: int, *, warm_up: int = 0
) -> dict[str, list[float]]:
    """Seconds of each call of each action, which take turns; the first `warm_up` turns are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(-warm_up, times):
        for name, action in actions.items():
            begun = time.perf_counter()
            action()
            if turn >= 0:
                seconds[name].append(time.perf_counter() - begun)
    return seconds


def side_by_side(threads: int, ready: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> float:
    """Seconds that `threads` threads need for `items` together. Each gets its action from `ready` before the
    clock starts.
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
    with contextlib.suppress(threading.BrokenBarrierError):  # whoever broke it has left the reason
        start.wait()
    begun = time.perf_counter()
    for thread in running:
        thread.join()
    seconds = time.perf_counter() - begun
    if failures:
        raise failures[0]
    return seconds


def p50(seconds: list[float]) -> float:
    return statistics.median(seconds)


def p95(seconds: list[float]) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.95))]
