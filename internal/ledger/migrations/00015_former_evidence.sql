-- +goose Up
-- Evidence is replaced by evidence of more trials only.

ALTER TABLE audits ADD COLUMN evidence_trials bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN audits.evidence_trials IS 'trials of the evidence in progress, on all copies; evidence of fewer does not replace it unless the audit has begun again';
UPDATE audits SET evidence_trials = trials WHERE progress IS NOT NULL;

CREATE TABLE former_evidence (
  query           bigint PRIMARY KEY REFERENCES queries ON DELETE CASCADE,
  at              timestamptz NOT NULL DEFAULT now(),
  processes       integer NOT NULL,
  verdict         text NOT NULL,
  trials          bigint NOT NULL,
  evidence_trials bigint NOT NULL,
  epsilon_lower   float8,
  data_epoch      text NOT NULL,
  engine_epoch    text NOT NULL,
  progress        bytea NOT NULL
);
CREATE INDEX ON former_evidence (at);
COMMENT ON TABLE former_evidence IS 'evidence of audits that have begun again, until the new evidence has more trials; columns as in audits';
COMMENT ON COLUMN former_evidence.progress IS 'it holds values of results and needs the protection of the raw data';

-- +goose Down
DROP TABLE former_evidence;
ALTER TABLE audits DROP COLUMN evidence_trials;
