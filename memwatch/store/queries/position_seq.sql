-- no parameters: the newest number of a position
SELECT coalesce(max(seq), 0) FROM position;
