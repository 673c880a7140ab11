"""Addresses of an application that are compiled once, because thousands of tests make one each."""

from collections.abc import Callable

import werkzeug.routing

_builders: dict[tuple[object, ...], Callable[..., tuple[str, str]]] = {}


class CompiledOnce(werkzeug.routing.Rule):
    """A rule whose functions for building addresses are those of an equal rule of an earlier application.

    Werkzeug compiles two for each rule, and nothing here calls them. They took three quarters of the time of
    making an application.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        key = (self.rule, tuple((self.defaults or {}).items()), append_unknown)
        if key not in _builders:
            _builders[key] = super()._compile_builder(append_unknown)
        return _builders[key]
