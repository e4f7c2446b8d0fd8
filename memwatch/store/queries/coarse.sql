-- $t0_us: since when; $bucket_us: length of a bucket
-- One row for each resource and bucket: resource, time of last, min, max, last.
SELECT
    resource,
    max(t_us) AS last_us,
    min(coalesce(low, used)),
    max(coalesce(high, used)),
    arg_max(used, t_us)
FROM sample
WHERE t_us >= $t0_us AND used IS NOT NULL
GROUP BY resource, t_us // $bucket_us
ORDER BY resource, last_us;
