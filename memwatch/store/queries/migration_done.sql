-- $number of a migration, $at microseconds since the epoch
INSERT INTO migration VALUES ($number, $at);
