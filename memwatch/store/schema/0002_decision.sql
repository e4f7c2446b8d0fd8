-- What the threshold engine decided, and what its plans came to. what: level, plan, soft_limit, ask,
-- withdraw, suppressed, breaker, shout, effect; share or bytes in value, bytes in "limit".
CREATE TABLE decision (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    what VARCHAR,
    level VARCHAR,
    resource VARCHAR,
    rule VARCHAR,
    value DOUBLE,
    "limit" DOUBLE,
    dry BOOLEAN,
    plan VARCHAR,
    state VARCHAR,
    effect VARCHAR,
    before_bytes DOUBLE,
    after_bytes DOUBLE,
    why VARCHAR
);
