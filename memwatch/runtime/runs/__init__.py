"""Runs by name and place.

target, writer, attach          which run a word means, who writes it, a session with its guard
one_look                        a run that no guard watches, looked at once
catalog, meta, meta_file        all runs that were seen
recovery_file, host_file        what was learnt of recoveries: of one run, of this machine
keeper                          starts a detached guard again
"""
