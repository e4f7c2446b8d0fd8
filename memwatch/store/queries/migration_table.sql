-- no parameters
CREATE TABLE migration (number BIGINT, applied_us BIGINT);
