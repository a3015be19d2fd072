-- +goose Up
-- What was sent to the receivers of alerts. The jobs of the deliveries are in the queue, with the kind 'alert'.

CREATE TABLE alerts (
  id         text PRIMARY KEY,
  engine     text NOT NULL,
  subject    text NOT NULL,
  kind       text NOT NULL,
  severity   text NOT NULL,
  status     text NOT NULL CHECK (status IN ('firing', 'resolved')),
  title      text NOT NULL,
  starts_at  timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  ends_at    timestamptz,
  body       jsonb NOT NULL
);
CREATE INDEX ON alerts (engine, updated_at);
COMMENT ON TABLE alerts IS 'alerts of each engine in their latest state';
COMMENT ON COLUMN alerts.subject IS 'one alert at a time fires for a subject of an engine';
COMMENT ON COLUMN alerts.body IS 'the message as receivers get it; no values of rows unless log.values is set';

CREATE TABLE deliveries (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  alert    text NOT NULL REFERENCES alerts ON DELETE CASCADE,
  receiver text NOT NULL,
  state    text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  error    text NOT NULL DEFAULT '',
  at       timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  body     jsonb NOT NULL
);
CREATE INDEX ON deliveries (alert, id);
COMMENT ON TABLE deliveries IS 'messages to receivers: one for the beginning of an alert, one for a higher severity, one for the end';
COMMENT ON COLUMN deliveries.state IS 'pending: it is tried again; failed: every attempt failed, dpwatch alerts retry sends it again';

-- +goose Down
DROP TABLE deliveries;
DROP TABLE alerts;
