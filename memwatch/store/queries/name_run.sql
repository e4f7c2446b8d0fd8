-- $run_key, $created_us: say in a new file whose history it is
INSERT INTO run SELECT $run_key, $created_us WHERE NOT EXISTS (SELECT 1 FROM run);
