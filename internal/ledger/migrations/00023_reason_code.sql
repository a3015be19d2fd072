-- +goose Up
ALTER TABLE audits ADD COLUMN reason_code text NOT NULL DEFAULT '';
COMMENT ON COLUMN audits.reason_code IS 'a reason of the verdict that coverage counts apart: vacuous; empty = another one';

-- +goose Down
ALTER TABLE audits DROP COLUMN reason_code;
