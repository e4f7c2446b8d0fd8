-- One run a file. Append-only, no primary keys: positions alone keep a record from coming twice.
-- log (agent | guard) and segment (its first lsn) say where a row was read: when a segment turns
-- out to be cut or rewritten, all that was read from it is void, is deleted and read again.

CREATE TABLE run (
    run_key VARCHAR,
    created_us BIGINT
);

-- what: begin | end. One start of the agent's process.
CREATE TABLE start (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    what VARCHAR,
    start_id VARCHAR,
    boot VARCHAR,
    agent VARCHAR,
    version VARCHAR,
    pid BIGINT,
    memory_limit BIGINT,
    status VARCHAR,
    reason VARCHAR
);

-- what: begin | end.
CREATE TABLE experiment (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    what VARCHAR,
    experiment BIGINT,
    title VARCHAR,
    phase VARCHAR,
    status VARCHAR,
    duration_us BIGINT,
    metrics VARCHAR -- JSON
);

-- Names that `sample` uses, each written when first seen.
CREATE TABLE resource (
    name VARCHAR,
    unit VARCHAR,
    first_us BIGINT
);

-- low and high are set in rows that roll several samples up; `used` is the last of them.
CREATE TABLE sample (
    log VARCHAR,
    segment BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    resource VARCHAR,
    used BIGINT,
    "limit" BIGINT,
    entries BIGINT,
    tokens BIGINT,
    low BIGINT,
    high BIGINT
);

-- Sums; a second may stand in several rows. bytes_out is what purges and deletes say they freed.
CREATE TABLE tier_flow (
    log VARCHAR,
    segment BIGINT,
    t_s BIGINT,
    tier VARCHAR,
    experiment BIGINT,
    tool VARCHAR,
    puts BIGINT,
    updates BIGINT,
    deletes BIGINT,
    bytes_in BIGINT,
    bytes_out BIGINT
);

-- what: begin | commit | abort.
CREATE TABLE checkpoint_event (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    what VARCHAR,
    id VARCHAR,
    kind VARCHAR,
    base VARCHAR,
    first_lsn BIGINT,
    last_lsn BIGINT,
    bytes BIGINT,
    entries BIGINT,
    duration_us BIGINT,
    stall_us BIGINT,
    reason VARCHAR
);

-- what: begin | end.
CREATE TABLE intervention_event (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    what VARCHAR,
    action VARCHAR,
    tier VARCHAR,
    how VARCHAR,
    cause VARCHAR,
    entries BIGINT,
    freed_bytes BIGINT,
    persisted BIGINT,
    dropped BIGINT,
    duration_us BIGINT
);

-- One line for a person. lsn and m_us are NULL for a fault of a log.
CREATE TABLE event (
    log VARCHAR,
    segment BIGINT,
    lsn BIGINT,
    t_us BIGINT,
    m_us BIGINT,
    kind VARCHAR,
    severity VARCHAR,
    origin VARCHAR,
    text VARCHAR
);

-- Where reading goes on, written with the rows that lie before it; the greatest seq counts.
CREATE TABLE position (
    seq BIGINT,
    log VARCHAR,
    segment BIGINT,
    byte_offset BIGINT,
    next_lsn BIGINT,
    open_tools VARCHAR -- JSON: thread to the tool at work there
);
