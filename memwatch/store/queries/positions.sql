-- no parameters: the newest position of each segment
SELECT DISTINCT ON (log, segment) log, segment, byte_offset, next_lsn, open_tools
FROM position
ORDER BY log, segment, seq DESC;
