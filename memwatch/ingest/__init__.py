"""Files and processes to records and samples: tailer (truth), watcher (hint), probe."""
