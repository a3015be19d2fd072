-- +goose Up
ALTER TABLE audits ADD COLUMN watch bytea;
COMMENT ON COLUMN audits.watch IS 'the change detector of a decided audit; it holds values of results and needs the protection of the raw data';

CREATE TABLE budget_hours (
  engine  text NOT NULL,
  hour    timestamptz NOT NULL,
  trials  bigint NOT NULL,
  seconds float8 NOT NULL,
  PRIMARY KEY (engine, hour)
);
CREATE INDEX ON budget_hours (hour);
COMMENT ON TABLE budget_hours IS 'what audit.budget counts: trials begun, and seconds in which replay sessions ran statements';

-- +goose Down
DROP TABLE budget_hours;
ALTER TABLE audits DROP COLUMN watch;
