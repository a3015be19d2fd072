-- +goose Up
ALTER TABLE queries ADD COLUMN claim_curve text NOT NULL DEFAULT '';
COMMENT ON COLUMN queries.claim_curve IS 'the whole claim if it is a curve (mu=0.268), of which epsilon and delta are one point; empty = these are the claim';
