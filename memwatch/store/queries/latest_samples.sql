-- no parameters: the newest sample of each resource
SELECT
    resource,
    max(t_us),
    arg_max_null(used, t_us),
    arg_max_null("limit", t_us),
    arg_max_null(entries, t_us),
    arg_max_null(tokens, t_us)
FROM sample
GROUP BY resource
ORDER BY resource;
