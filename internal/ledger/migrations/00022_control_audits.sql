-- +goose Up
-- A control audit has one row for each version of the copies.
CREATE TABLE control_audits (
  engine          text NOT NULL,
  key             text NOT NULL,
  data_epoch      text NOT NULL,
  verdict         text NOT NULL,
  state           text NOT NULL,
  trials          bigint NOT NULL,
  epsilon_lower   float8,
  processes       integer NOT NULL,
  engine_epoch    text NOT NULL,
  evidence_trials bigint NOT NULL,
  progress        bytea,
  updated         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (engine, key, data_epoch)
);
CREATE INDEX ON control_audits (updated);
COMMENT ON TABLE control_audits IS 'audits of D0 against its twin, which measure the rate of false alarms; violation means a false alarm';
COMMENT ON COLUMN control_audits.key IS 'that of the query, with a suffix';
COMMENT ON COLUMN control_audits.progress IS 'evidence and the facts to go on from; it holds values of results and needs the protection of the raw data; NULL once it is older than ledger.retention';

-- +goose Down
DROP TABLE control_audits;
