"""Checkpoints of a log or of a store: what is known of them, how they do, what is due, what to do.

`fold` reads a log, `cadence` and `habit` say what is due, `stats`, `bloat`, `next_size` and `prune`
judge a course of them (`course.Seen`), `store` says all of it of another program's checkpoints.
"""
