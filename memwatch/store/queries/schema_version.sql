-- no parameters
SELECT coalesce(max(number), 0) FROM migration;
