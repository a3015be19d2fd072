-- +goose Up
-- Samples of the statements that are not audited.

CREATE TABLE samples (
  engine      text NOT NULL,
  reason      text NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  shape       text NOT NULL,
  detail      text NOT NULL,
  advice      text NOT NULL,
  text        bytea,
  at          timestamptz NOT NULL
);
CREATE INDEX ON samples (engine, reason);
COMMENT ON TABLE samples IS 'a few of the statements that are not audited, at most 5 for each engine and reason; shape, detail and advice hold no constants';
COMMENT ON COLUMN samples.text IS 'the beginning of the statement with its constants; NULL unless log.sql is set, and encrypted as statements are';

-- +goose Down
DROP TABLE samples;
