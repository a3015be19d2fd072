-- +goose Up
-- What was observed while the ledger was away comes later, from the files of a process that may have ended: it must not count twice.

CREATE TABLE terms (
  engine text NOT NULL,
  term   bigint NOT NULL,
  seq    bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (engine, term)
);
COMMENT ON COLUMN terms.seq IS 'the last batch of observations of the term, so that none counts twice';
INSERT INTO terms (engine, term, seq) SELECT name, term, seq FROM engines;
ALTER TABLE engines DROP COLUMN seq;

CREATE TABLE spooled (
  file text PRIMARY KEY,
  at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE spooled IS 'files of captured queries that were submitted, in case they could not be removed';

-- +goose Down
DROP TABLE spooled;
ALTER TABLE engines ADD COLUMN seq bigint NOT NULL DEFAULT 0;
UPDATE engines e SET seq = t.seq FROM terms t WHERE t.engine = e.name AND t.term = e.term;
DROP TABLE terms;
