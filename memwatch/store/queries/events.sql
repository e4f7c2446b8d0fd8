-- $t0_us (included), $t1_us (excluded), $kinds (none: all), $count: the newest so many of them
SELECT t_us, kind, severity, origin, text
FROM event
WHERE t_us >= $t0_us AND t_us < $t1_us
    AND (len($kinds::VARCHAR[]) = 0 OR list_contains($kinds::VARCHAR[], kind))
ORDER BY t_us DESC, rowid DESC
LIMIT $count;
