-- no parameters
SELECT DISTINCT name FROM resource;
