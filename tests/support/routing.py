"""Addresses of an application that are compiled once, because thousands of tests make one each."""

from typing import Any

import werkzeug.routing

_compiled: dict[tuple[object, ...], dict[str, Any]] = {}
COMPILED = ("_parts", "_trace", "_converters", "_build", "_build_unknown", "arguments")


class CompiledOnce(werkzeug.routing.Rule):
    """A rule that shares what Werkzeug compiled for an equal rule of an earlier application, which took most
    of the time of making one.
    """

    def compile(self) -> None:
        key = (self.rule, self.subdomain, self.merge_slashes, tuple((self.defaults or {}).items()))
        if key not in _compiled:
            super().compile()
            _compiled[key] = {name: getattr(self, name) for name in COMPILED}
        vars(self).update(_compiled[key])
