"""Records and samples to figures, verdicts and words. Pure, incremental.

told, run_state, deed_fold     the agent's log folded: what the run is like, what was done
phases, tally                  parts of that
store_state, store_changes     the same of a checkpoint store that another program writes
series, growth                 a resource's course, and its slope
checkpoints, efficacy          how checkpoints do; what interventions did
recovery, budget               what a crash would cost, and what it may cost
deeds, advice, suggest         what helped before, what that teaches, what to do
lights, alerts                 is it fine; what a person should know
narrate, narrate_guard, since  both logs in words; what happened since somebody looked
report                         a night in ten lines and tables
"""
