-- +goose Up
ALTER TABLE analyst_hours ADD COLUMN unread bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN analyst_hours.unread IS 'executions of refused DP queries whose claims are not known: the sums lack them';

-- +goose Down
ALTER TABLE analyst_hours DROP COLUMN unread;
