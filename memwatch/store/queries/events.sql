-- $t0_us (included), $t1_us (excluded), $count: the newest so many between the two
SELECT t_us, kind, severity, origin, text
FROM event
WHERE t_us >= $t0_us AND t_us < $t1_us
ORDER BY t_us DESC, rowid DESC
LIMIT $count;
