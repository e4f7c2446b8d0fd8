"""Files and processes to records and samples: tailer (truth), watcher (hint), probe.

`foreign` lists what other programs write that can be watched as a run, `stores` looks at it.
"""
