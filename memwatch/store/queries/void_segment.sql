-- $log, $segment: forget what was read from it, but not that it was found damaged
DELETE FROM start WHERE log = $log AND segment = $segment;
DELETE FROM experiment WHERE log = $log AND segment = $segment;
DELETE FROM sample WHERE log = $log AND segment = $segment;
DELETE FROM tier_flow WHERE log = $log AND segment = $segment;
DELETE FROM checkpoint_event WHERE log = $log AND segment = $segment;
DELETE FROM intervention_event WHERE log = $log AND segment = $segment;
DELETE FROM decision WHERE log = $log AND segment = $segment;
DELETE FROM event WHERE log = $log AND segment = $segment AND kind <> 'fault';
