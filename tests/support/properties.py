"""Hypothesis profiles of the suite, and how many examples a property gets."""

import hypothesis

SUITE = "suite"

# Properties are about what holds, not about how long it takes on a busy machine.
hypothesis.settings.register_profile(SUITE, deadline=None, max_examples=50)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2_000)


def at_least(number):
    """So many examples of a property, or as many as the profile has where those are more."""
    return max(number, hypothesis.settings.default.max_examples)
