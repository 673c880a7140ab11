// Notes: what the reasoner has written.
