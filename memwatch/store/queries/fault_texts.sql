-- $count of faults at most: those that are known, by log and text, which names the place
SELECT DISTINCT log, text FROM event WHERE kind = 'fault' LIMIT $count;
