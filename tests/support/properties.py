"""Hypothesis profiles of the suite, and how many examples a property gets."""

import hypothesis

QUICK = "quick"

# Properties are about what holds, not about how long it takes on a busy machine.
hypothesis.settings.register_profile(QUICK, deadline=None, max_examples=20)
hypothesis.settings.register_profile("full", deadline=None, max_examples=100)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2_000)


def at_least(number: int) -> int:
    """How many examples a property gets that needs `number` of them; a quarter in the quick profile, and
    never fewer than others get.
    """
    examples = hypothesis.settings.default.max_examples
    return max(
        number if examples > hypothesis.settings.get_profile(QUICK).max_examples else number // 4, examples
    )
