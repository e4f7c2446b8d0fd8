"""The guard process: its threads, its own log, its ledger, what it offers to viewers.

guard, assembly, controls           the process: its life; its parts, made and joined
ingest_loop, probe_loop             threads that read the log and measure the processes
store_watch                         in place of ingest_loop where another program keeps no log
warden: engine_facts, portrait      the thread of the engine; what it and viewers are told
authority, wishes, policy_keeper    what the engine may do, by whose word, by which policy
ledger, requests                    what was asked of the agent, and what became of it
clerk, upkeep, reserve, budget      the thread for all that may wait for a disk
estimates, disk_rates, efficacy_log what is learnt of recoveries, of the disk, of deeds, and kept
recorder, recollection              guard.wal, written first; what the next guard reads of it
history, history_feed, own_log      the stored history, and guard.wal on its way into it
notifier, heartbeat, leaving        who is told; what happened since the last viewer left
hub                                 what viewers are offered
"""
