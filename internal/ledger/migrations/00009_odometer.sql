-- +goose Up
-- What each analyst received, by the claims of the answers: sums that composition theorems need (internal/odometer).

CREATE TABLE analyst_hours (
  engine      text NOT NULL,
  hour        timestamptz NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  repeated    boolean NOT NULL,
  answers     bigint NOT NULL,
  epsilon     float8 NOT NULL,
  squares     float8 NOT NULL,
  drift       float8 NOT NULL,
  delta       float8 NOT NULL,
  rho         float8 NOT NULL,
  PRIMARY KEY (engine, hour, username, database, application, repeated)
);
COMMENT ON COLUMN analyst_hours.hour IS 'epoch: the sum of the hours that are older than the retention, without applications';
COMMENT ON COLUMN analyst_hours.repeated IS 'the analyst had run the same query before: an engine with a cache repeats its answer';

CREATE TABLE budgets_exceeded (
  engine      text NOT NULL,
  budget      text NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  since       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (engine, budget, username, database, application)
);
COMMENT ON TABLE budgets_exceeded IS 'analysts whose answers exceed a budget of the configuration, and for whom an alert was sent';

-- +goose Down
DROP TABLE budgets_exceeded, analyst_hours;
