-- A bank: transfers between the accounts of two clients, and between clients; employees approve.
CREATE TABLE branch (id serial PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE currency (code char(3) PRIMARY KEY, name text NOT NULL);
CREATE TABLE employee (id serial PRIMARY KEY, branch_id int NOT NULL REFERENCES branch, first_name text NOT NULL, last_name text NOT NULL, email text NOT NULL UNIQUE, password_hash text, last_login timestamptz);
CREATE TABLE client (id bigserial PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, email text NOT NULL UNIQUE, phone text, birth_date date NOT NULL, password_hash text NOT NULL, last_login timestamptz, referred_by bigint REFERENCES client);
CREATE TABLE bank_account (id bigserial PRIMARY KEY, client_id bigint NOT NULL REFERENCES client, branch_id int REFERENCES branch, currency char(3) NOT NULL REFERENCES currency, balance numeric(12,2) NOT NULL, opened date NOT NULL, closed_by int REFERENCES employee);
CREATE TABLE account_holder (account_id bigint NOT NULL REFERENCES bank_account, client_id bigint NOT NULL REFERENCES client, since date, PRIMARY KEY (account_id, client_id));
CREATE TABLE transfer (id bigserial PRIMARY KEY, sender_id bigint NOT NULL REFERENCES client, receiver_id bigint NOT NULL REFERENCES client, amount numeric(12,2) NOT NULL CHECK (amount >= 0), currency char(3) NOT NULL REFERENCES currency, booked timestamptz NOT NULL, approved_by int REFERENCES employee);
CREATE TABLE card (id bigserial PRIMARY KEY, account_id bigint NOT NULL REFERENCES bank_account, last_digits int NOT NULL, blocked_by bigint REFERENCES client);
CREATE TABLE card_payment (id bigserial PRIMARY KEY, card_id bigint NOT NULL REFERENCES card, amount numeric(12,2) NOT NULL, merchant text);
CREATE TABLE dispute (id bigserial PRIMARY KEY, transfer_id bigint NOT NULL REFERENCES transfer, client_id bigint NOT NULL, reason text, watchers bigint[], resolved_by_id int REFERENCES employee);
CREATE TABLE newsletter (id bigserial PRIMARY KEY, email text, subscribed boolean NOT NULL);
CREATE TABLE audit_log (id bigserial PRIMARY KEY, transfer_id bigint REFERENCES transfer, object_type text NOT NULL, object_id bigint NOT NULL, actor jsonb, action text NOT NULL CHECK (action IN ('view', 'change', 'delete')));
