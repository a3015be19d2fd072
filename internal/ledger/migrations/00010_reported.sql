-- +goose Up
ALTER TABLE fleet ADD COLUMN reported bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN fleet.reported IS 'processes of evidence that ended in a violation, ever: with audit.error_rate fdr, later ones have larger shares of the error rate';
UPDATE fleet SET reported = (SELECT count(*) FROM audits WHERE verdict = 'violation');

-- +goose Down
ALTER TABLE fleet DROP COLUMN reported;
