-- $t0_us: since when; $bucket_us: length of a bucket
-- One row for each resource and bucket: resource, time of last, min, max, last.
WITH course AS (
    SELECT
        resource,
        t_us,
        coalesce(low, used) AS low,
        coalesce(high, used) AS high,
        used AS value
    FROM sample
    WHERE t_us >= $t0_us
    UNION ALL
    SELECT replace(resource, 'tier:', 'entries:'), t_us, entries, entries, entries
    FROM sample
    WHERE t_us >= $t0_us AND starts_with(resource, 'tier:')
)

SELECT
    resource,
    max(t_us) AS last_us,
    min(low),
    max(high),
    arg_max(value, t_us)
FROM course
WHERE value IS NOT NULL
GROUP BY resource, t_us // $bucket_us
ORDER BY resource, last_us;
