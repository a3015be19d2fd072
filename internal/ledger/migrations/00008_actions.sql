-- +goose Up
-- What operators do with the findings. Rows are only added.

CREATE TABLE actions (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query        bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at           timestamptz NOT NULL DEFAULT now(),
  operator     text NOT NULL,
  role         text NOT NULL DEFAULT session_user,
  action       text NOT NULL CHECK (action IN ('accept', 'revoke', 'end', 'reproduce')),
  reason       text NOT NULL,
  until        timestamptz,
  engine_epoch text NOT NULL DEFAULT '',
  CHECK ((action = 'accept') = (until IS NOT NULL))
);
CREATE INDEX ON actions (query, id) WHERE action <> 'reproduce';
COMMENT ON TABLE actions IS 'accepted violations, the ends of acceptances, and reproductions: who, when, what, why';
COMMENT ON COLUMN actions.operator IS 'as the command gave it; role is the database role';
COMMENT ON COLUMN actions.action IS 'accept; revoke: an operator ended an acceptance; end: its date passed or the engine changed; reproduce';
COMMENT ON COLUMN actions.engine_epoch IS 'engine of the audit at that time; another one ends an acceptance';

-- +goose Down
DROP TABLE actions;
