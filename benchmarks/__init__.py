"""What the service costs, measured on the machine at hand: `make bench` prints each figure beside its floor
and its budget.

A floor is the least that the same work could cost here and now: the same decoding, sealing and flushing in a
bare loop, an answer of the same server that touches nothing, a bare query of the same index. It is taken in
the same run and in turns with what it is compared to, so that a slow machine, or a busy one, moves both.

`material` makes texts, pictures and queries, `seed` fills data folders with them, `service` runs the real server and speaks to
it, `timing` compares in turns, `floors` are the bare loops, `measure` has a function for each group of figures with its
budgets, `figures` the table.

`load` lets everybody come at once for minutes: `make load`. Its `clients` are Locust's, and `verdicts` says what they may see.
"""
