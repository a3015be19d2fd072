-- +goose Up
-- The tables of the ledger. Names are resolved in the ledger's schema, which is the connection's search_path.

CREATE TABLE fleet (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  begun     bigint NOT NULL DEFAULT 0
);
INSERT INTO fleet DEFAULT VALUES;
COMMENT ON COLUMN fleet.begun IS 'processes of evidence that have begun: each has its share of the error rate of the family';

CREATE TABLE engines (
  name text PRIMARY KEY,
  term bigint NOT NULL,
  seq  bigint NOT NULL DEFAULT 0,
  at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN engines.term IS 'increases when an auditor takes over the engine: an earlier auditor cannot write any more';
COMMENT ON COLUMN engines.seq IS 'the last batch of observations of the term, so that none is counted twice';

CREATE TABLE queries (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine       text NOT NULL,
  key          text NOT NULL,
  shape        text NOT NULL,
  fingerprint  text NOT NULL,
  summary      text NOT NULL,
  statement    bytea,
  epsilon      float8,
  delta        float8,
  claim_source text NOT NULL,
  claim_rule   text NOT NULL,
  executions   bigint NOT NULL DEFAULT 0,
  first_seen   timestamptz NOT NULL,
  last_seen    timestamptz NOT NULL,
  UNIQUE (engine, key)
);
CREATE INDEX ON queries (last_seen);
COMMENT ON COLUMN queries.key IS 'identity of the mechanism: statement with constants, parameters, settings, claim';
COMMENT ON COLUMN queries.statement IS 'the captured statement in binary form; NULL = the query has had no audit';

CREATE TABLE query_users (
  query       bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  executions  bigint NOT NULL,
  first_seen  timestamptz NOT NULL,
  last_seen   timestamptz NOT NULL,
  PRIMARY KEY (query, username, database, application)
);

CREATE TABLE query_hours (
  query      bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  hour       timestamptz NOT NULL,
  executions bigint NOT NULL,
  PRIMARY KEY (query, hour)
);
CREATE INDEX ON query_hours (hour);

CREATE TABLE skipped (
  engine     text NOT NULL,
  reason     text NOT NULL,
  hour       timestamptz NOT NULL,
  statements bigint NOT NULL,
  PRIMARY KEY (engine, reason, hour)
);
CREATE INDEX ON skipped (hour);

CREATE TABLE audits (
  query      bigint PRIMARY KEY REFERENCES queries ON DELETE CASCADE,
  state      text NOT NULL,
  verdict    text NOT NULL,
  trials     bigint NOT NULL,
  epsilon_lower float8,
  processes  integer NOT NULL,
  data_epoch text NOT NULL,
  progress   bytea,
  parsing    integer NOT NULL DEFAULT 0,
  updated    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN audits.processes IS 'how often the evidence began: each time has its share of the error rate';
COMMENT ON COLUMN audits.progress IS 'evidence and the facts to go on from; it holds values of results and needs the protection of the raw data';
COMMENT ON COLUMN audits.parsing IS 'restores of the audit that did not complete: its statement may crash the parser';

CREATE TABLE events (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query  bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at     timestamptz NOT NULL DEFAULT now(),
  state  text NOT NULL,
  verdict text NOT NULL,
  reason text NOT NULL
);
CREATE INDEX ON events (query, id);
CREATE INDEX ON events (at);
COMMENT ON TABLE events IS 'the history of each audit: a row for every change of its state or verdict';

CREATE TABLE set_aside (
  query    bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at       timestamptz NOT NULL DEFAULT now(),
  reason   text NOT NULL,
  progress bytea NOT NULL
);
CREATE INDEX ON set_aside (query);
COMMENT ON TABLE set_aside IS 'progress that could not be restored: it is damaged, or a newer version wrote it';

-- +goose Down
DROP TABLE set_aside, events, audits, skipped, query_hours, query_users, queries, engines, fleet;
