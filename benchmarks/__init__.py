"""Measurements of speed and memory on the machine at hand: `make bench` prints each figure beside its floor
and its budget.

A floor is the least that the same work can cost here and now: the same decoding, sealing and flushing in a
bare loop, an answer of the same server that does no work, a bare query of the same index. It is measured in
the same run, alternating with the figure, so that a slow or busy machine affects both.

`material` makes texts, pictures and queries; `seed` fills data folders with them; `service` runs the real
server and sends it requests; `timing` times alternating actions; `floors` has the bare loops; `measure` has a
function for each group of figures with its budgets; `figures` prints the table.

`load` runs all kinds of clients at once for some minutes: `make load`. Its `clients` are Locust users, and
`verdicts` decides which answers are allowed.
"""
