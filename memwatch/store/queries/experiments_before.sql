-- $lsn: count of experiments by status whose end was logged below it
SELECT coalesce(status, 'done'), count(DISTINCT experiment)
FROM experiment
WHERE what = 'end' AND lsn < $lsn
GROUP BY ALL;
