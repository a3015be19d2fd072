-- +goose Up
-- Which turn of an audit is current, and which worker holds it. A job of the queue alone gives no right to write.

CREATE TABLE turns (
  number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine  text NOT NULL,
  key     text NOT NULL,
  job     bigint,
  holder  text NOT NULL DEFAULT '',
  hurry   boolean NOT NULL DEFAULT false,
  outcome jsonb,
  given   timestamptz NOT NULL DEFAULT now(),
  taken   timestamptz,
  ended   timestamptz,
  UNIQUE (engine, key)
);
COMMENT ON TABLE turns IS 'the current turn of each audit that a worker has, may take, or has ended; a turn without a row is outdated';
COMMENT ON COLUMN turns.number IS 'of the turn: no two turns have the same';
COMMENT ON COLUMN turns.job IS 'the job of the queue with which a worker gets the turn';
COMMENT ON COLUMN turns.holder IS 'the worker that has taken the turn; empty = none has';
COMMENT ON COLUMN turns.hurry IS 'the worker must end the turn soon';
COMMENT ON COLUMN turns.outcome IS 'what the worker reported at the end; NULL = the turn has not ended';

-- +goose Down
DROP TABLE turns;
