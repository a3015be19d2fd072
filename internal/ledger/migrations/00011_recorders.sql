-- +goose Up
-- Several processes capture the queries of one engine, and one of them audits it.

ALTER TABLE engines ADD COLUMN host text NOT NULL DEFAULT '', ADD COLUMN configuration text NOT NULL DEFAULT '';
COMMENT ON COLUMN engines.host IS 'host of the process that audits the engine, or did last';
COMMENT ON COLUMN engines.configuration IS 'hash of what decides about audits in its configuration; empty = not known';

CREATE TABLE recorders (
  engine        text NOT NULL,
  term          bigint NOT NULL,
  host          text NOT NULL,
  configuration text NOT NULL,
  since         timestamptz NOT NULL DEFAULT now(),
  seen          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (engine, term)
);
COMMENT ON TABLE recorders IS 'processes that capture queries of an engine while another process audits it';
COMMENT ON COLUMN recorders.term IS 'of the batches of observations of the process, in table terms';

CREATE TABLE captures (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine     text NOT NULL,
  content    bytea NOT NULL,
  statements bigint NOT NULL,
  at         timestamptz NOT NULL DEFAULT now(),
  attempts   integer NOT NULL DEFAULT 0,
  part       integer NOT NULL DEFAULT -1,
  left_out   integer[] NOT NULL DEFAULT '{}'
);
CREATE INDEX ON captures (engine, id);
COMMENT ON TABLE captures IS 'captured queries of processes that do not audit the engine, until the process that does has recorded them';
COMMENT ON COLUMN captures.content IS 'queries with their parameters in binary form; they need the protection of the raw data';
COMMENT ON COLUMN captures.part IS 'from the second attempt on, the query that is being submitted: its statement may crash the parser';

-- +goose Down
DROP TABLE captures, recorders;
ALTER TABLE engines DROP COLUMN host, DROP COLUMN configuration;
