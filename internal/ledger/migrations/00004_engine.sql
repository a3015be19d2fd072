-- +goose Up
ALTER TABLE engines ADD COLUMN label text NOT NULL DEFAULT '';
COMMENT ON COLUMN engines.label IS 'the last label of a deploy that was posted to the admin API';

ALTER TABLE audits ADD COLUMN engine_epoch text NOT NULL DEFAULT '', ADD COLUMN violation jsonb;
COMMENT ON COLUMN audits.engine_epoch IS 'version of the engine that gave the evidence; empty = not known';
COMMENT ON COLUMN audits.violation IS 'the latest violation that is not resolved, while the audit may have begun again; NULL = none';

-- +goose Down
ALTER TABLE audits DROP COLUMN engine_epoch, DROP COLUMN violation;
ALTER TABLE engines DROP COLUMN label;
