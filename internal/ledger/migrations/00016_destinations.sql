-- +goose Up
-- Where the answers of a query went.

ALTER TABLE queries ADD COLUMN destinations text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN queries.destinations IS 'where answers went: to the client, into table s.t, as row counts; at most 8; empty = recorded by an earlier version';

-- +goose Down
ALTER TABLE queries DROP COLUMN destinations;
