"""The ring in memory, and what a snapshot shows of it. Nothing here does input or output.

ring, event_book, log_tail              what is known, of the last two hours
snapshot_builder, facts                 a snapshot of it, and what that needs besides
run_view, resource_view, limits_view    the run, its resources, which limit binds
checkpoint_view, chain                  checkpoints, and what a recovery could start from
recovery_view                           if it crashed now
intervention_view, row_choice           what was done and what it did; which of it is kept and shown
deed, deed_watch, around_deeds          one thing that was done, watched, and what was around it
log_deeds, request_deeds, plan_deeds,
mode_deeds                              where deeds come from
"""
