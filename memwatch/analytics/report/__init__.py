"""A run's past in ten lines and tables: both logs folded once, in bounded memory. Pure.

course, dwell                  figures over time: first, peak, last; how long something was so
agent_fold, guard_fold         what the agent's log tells; what only the guard's knows
model                          the report as values: `memwatch report --json`
build                          folds, checkpoints on disk and the snapshot of the end put together
deeds                          plans and interventions in rows
lines, lines_recovery, words   the ten lines
tables                         the tables
markdown, escape               the whole as Markdown; text of others stays text
"""
