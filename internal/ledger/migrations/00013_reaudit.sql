-- +goose Up
-- An operator wants a query to be audited again.

ALTER TABLE actions DROP CONSTRAINT actions_action_check;
ALTER TABLE actions ADD CONSTRAINT actions_action_check CHECK (action IN ('accept', 'revoke', 'end', 'reproduce', 'reaudit'));
COMMENT ON TABLE actions IS 'accepted violations, the ends of acceptances, reproductions, and wishes for a new audit: who, when, what, why';
COMMENT ON COLUMN actions.action IS 'accept; revoke: an operator ended an acceptance; end: its date passed or the engine changed; reproduce; reaudit: the audit begins again';

-- +goose Down
DELETE FROM actions WHERE action = 'reaudit';
ALTER TABLE actions DROP CONSTRAINT actions_action_check;
ALTER TABLE actions ADD CONSTRAINT actions_action_check CHECK (action IN ('accept', 'revoke', 'end', 'reproduce'));
COMMENT ON TABLE actions IS 'accepted violations, the ends of acceptances, and reproductions: who, when, what, why';
COMMENT ON COLUMN actions.action IS 'accept; revoke: an operator ended an acceptance; end: its date passed or the engine changed; reproduce';
