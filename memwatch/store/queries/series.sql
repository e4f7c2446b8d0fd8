-- $resource; $entries: count of entries instead of usage; $t0_us (included), $t1_us (excluded);
-- $reach_us: how far to look before $t0_us; $columns
-- One row for each column that holds samples: column, min, max, last, time of first, time of last.
-- Column -1 is what lies before $t0_us, column $columns what lies behind $t1_us.
SELECT
    CASE
        WHEN t_us < $t0_us THEN -1
        WHEN t_us >= $t1_us THEN $columns
        -- the greatest column whose left edge, $t0_us + span * column // $columns, is not after t_us
        ELSE ((t_us - $t0_us + 1)::HUGEINT * $columns - 1) // ($t1_us - $t0_us)
    END::BIGINT AS chart_column,
    min(if($entries, entries, coalesce(low, used))),
    max(if($entries, entries, coalesce(high, used))),
    arg_max(if($entries, entries, used), t_us),
    min(t_us),
    max(t_us)
FROM sample
WHERE
    resource = $resource
    AND t_us >= $t0_us - $reach_us
    AND if($entries, entries, used) IS NOT NULL
GROUP BY chart_column
ORDER BY chart_column;
