-- +goose Up
-- The processes that take turns of audits on other machines. The turns that they are given are jobs of the queue.

CREATE TABLE workers (
  id        text PRIMARY KEY,
  engine    text NOT NULL,
  host      text NOT NULL,
  version   text NOT NULL,
  slots     integer NOT NULL,
  started   timestamptz NOT NULL DEFAULT now(),
  heartbeat timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON workers (engine, heartbeat);
COMMENT ON COLUMN workers.slots IS 'how many turns the worker takes at a time';
COMMENT ON COLUMN workers.heartbeat IS 'by this server''s clock; the turns of a worker without heartbeats are taken back';

-- +goose Down
DROP TABLE workers;
