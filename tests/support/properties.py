"""Hypothesis profiles of the suite, and the number of examples for a property."""

import hypothesis

QUICK = "quick"

# No deadline: properties do not test speed, which a busy machine changes.
# Tests try the same examples each time, so that only a change makes them fail; `make fuzz` looks for others.
hypothesis.settings.register_profile(QUICK, deadline=None, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=100, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2_000)


def at_least(number: int) -> int:
    """The number of examples for a property that needs `number`: a quarter of it in the quick profile, and
    never fewer than other properties get.
    """
    examples = hypothesis.settings.default.max_examples
    return max(
        number if examples > hypothesis.settings.get_profile(QUICK).max_examples else number // 4, examples
    )


# Repeated thousands of times, each of these makes a careless expression take quadratic time.
REPEATED = (
    *("1", "1 ", "1,", "a.", "a-", "-", "1-", "@", "a@a.", "1:", "+1 ", "$1 ", "http://", "1.1.", "年1月"),
    *("- ", "·"),
)
