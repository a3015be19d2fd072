-- +goose Up
ALTER TABLE query_hours ADD COLUMN unplaced bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN query_hours.unplaced IS 'of the executions, those while the query had no place for an audit; table skipped has them by reason';
CREATE INDEX ON set_aside (at);

-- +goose Down
DROP INDEX set_aside_at_idx;
ALTER TABLE query_hours DROP COLUMN unplaced;
