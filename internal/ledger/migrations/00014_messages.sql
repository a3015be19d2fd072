-- +goose Up
-- Messages are text: jsonb rejects \u0000, and a cast of its text to bytea reads backslashes as escapes. Jobs of messages that could not be read so
-- failed; each pending message gets a new one when dpwatch starts, and the former ones are outdated.

ALTER TABLE alerts ALTER COLUMN body TYPE text USING body::text;
ALTER TABLE deliveries ALTER COLUMN body TYPE text USING body::text, ADD COLUMN job bigint;
CREATE INDEX ON deliveries (id) WHERE state = 'pending';
COMMENT ON COLUMN alerts.body IS 'the message as receivers get it, as JSON; no values of rows unless log.values is set';
COMMENT ON COLUMN deliveries.job IS 'the job that sends the message; a pending message without one gets another';

-- +goose Down
DROP INDEX deliveries_id_idx;
ALTER TABLE deliveries DROP COLUMN job, ALTER COLUMN body TYPE jsonb USING body::jsonb;
ALTER TABLE alerts ALTER COLUMN body TYPE jsonb USING body::jsonb;
COMMENT ON COLUMN alerts.body IS 'the message as receivers get it; no values of rows unless log.values is set';
