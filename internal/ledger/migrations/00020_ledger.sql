-- +goose Up
-- The tables of the ledger. Names are resolved in the ledger's schema, which is the connection's search_path. Versions
-- below 20 are those of dpwatch 0.1.0 and earlier, whose ledgers are refused.

CREATE TABLE fleet (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  begun     bigint NOT NULL DEFAULT 0,
  reported  bigint NOT NULL DEFAULT 0
);
INSERT INTO fleet DEFAULT VALUES;
COMMENT ON COLUMN fleet.begun IS 'processes of evidence that have begun: each has its share of the error rate of the family';
COMMENT ON COLUMN fleet.reported IS 'processes of evidence that ended in a violation, ever: with audit.error_rate fdr, later ones have larger shares of the error rate';

-- Several processes capture the queries of one engine, and one of them audits it.

CREATE TABLE engines (
  name          text PRIMARY KEY,
  term          bigint NOT NULL,
  at            timestamptz NOT NULL DEFAULT now(),
  label         text NOT NULL DEFAULT '',
  host          text NOT NULL DEFAULT '',
  configuration text NOT NULL DEFAULT ''
);
COMMENT ON COLUMN engines.term IS 'increases when an auditor takes over the engine: an earlier auditor cannot write any more';
COMMENT ON COLUMN engines.label IS 'the last label of a deploy that was posted to the admin API';
COMMENT ON COLUMN engines.host IS 'host of the process that audits the engine, or did last';
COMMENT ON COLUMN engines.configuration IS 'hash of what decides about audits in its configuration; empty = not known';

CREATE TABLE recorders (
  engine        text NOT NULL,
  term          bigint NOT NULL,
  host          text NOT NULL,
  configuration text NOT NULL,
  since         timestamptz NOT NULL DEFAULT now(),
  seen          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (engine, term)
);
COMMENT ON TABLE recorders IS 'processes that capture queries of an engine while another process audits it';
COMMENT ON COLUMN recorders.term IS 'of the batches of observations of the process, in table terms';

-- What was observed while the ledger was away comes later, from the files of a process that may have ended: it must not
-- count twice.

CREATE TABLE terms (
  engine text NOT NULL,
  term   bigint NOT NULL,
  seq    bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (engine, term)
);
COMMENT ON COLUMN terms.seq IS 'the last batch of observations of the term, so that none counts twice';

CREATE TABLE spooled (
  file text PRIMARY KEY,
  at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE spooled IS 'files of captured queries that were submitted, in case they could not be removed';

CREATE TABLE captures (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine     text NOT NULL,
  content    bytea NOT NULL,
  statements bigint NOT NULL,
  at         timestamptz NOT NULL DEFAULT now(),
  attempts   integer NOT NULL DEFAULT 0,
  part       integer NOT NULL DEFAULT -1,
  left_out   integer[] NOT NULL DEFAULT '{}'
);
CREATE INDEX ON captures (engine, id);
COMMENT ON TABLE captures IS 'captured queries of processes that do not audit the engine, until the process that does has recorded them';
COMMENT ON COLUMN captures.content IS 'queries with their parameters in binary form; they need the protection of the raw data';
COMMENT ON COLUMN captures.part IS 'from the second attempt on, the query that is being submitted: its statement may crash the parser';

CREATE TABLE queries (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine       text NOT NULL,
  key          text NOT NULL,
  shape        text NOT NULL,
  fingerprint  text NOT NULL,
  summary      text NOT NULL,
  statement    bytea,
  epsilon      float8,
  delta        float8,
  claim_source text NOT NULL,
  claim_rule   text NOT NULL,
  executions   bigint NOT NULL DEFAULT 0,
  first_seen   timestamptz NOT NULL,
  last_seen    timestamptz NOT NULL,
  destinations text[] NOT NULL DEFAULT '{}',
  UNIQUE (engine, key)
);
CREATE INDEX ON queries (last_seen);
COMMENT ON COLUMN queries.key IS 'identity of the mechanism: statement with constants, parameters, settings, claim';
COMMENT ON COLUMN queries.statement IS 'the captured statement in binary form; NULL = the query has had no audit';
COMMENT ON COLUMN queries.destinations IS 'where answers went: to the client, into table s.t, as row counts; at most 8';

CREATE TABLE query_users (
  query       bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  executions  bigint NOT NULL,
  first_seen  timestamptz NOT NULL,
  last_seen   timestamptz NOT NULL,
  PRIMARY KEY (query, username, database, application)
);

CREATE TABLE query_hours (
  query      bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  hour       timestamptz NOT NULL,
  executions bigint NOT NULL,
  unplaced   bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (query, hour)
);
CREATE INDEX ON query_hours (hour);
COMMENT ON COLUMN query_hours.unplaced IS 'of the executions, those while the query had no place for an audit; table skipped has them by reason';

CREATE TABLE skipped (
  engine     text NOT NULL,
  reason     text NOT NULL,
  hour       timestamptz NOT NULL,
  statements bigint NOT NULL,
  PRIMARY KEY (engine, reason, hour)
);
CREATE INDEX ON skipped (hour);

CREATE TABLE samples (
  engine      text NOT NULL,
  reason      text NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  shape       text NOT NULL,
  detail      text NOT NULL,
  advice      text NOT NULL,
  text        bytea,
  at          timestamptz NOT NULL
);
CREATE INDEX ON samples (engine, reason);
COMMENT ON TABLE samples IS 'a few of the statements that are not audited, at most 5 for each engine and reason; shape, detail and advice hold no constants';
COMMENT ON COLUMN samples.text IS 'the beginning of the statement with its constants; NULL unless log.reveal is sql or values';

-- Evidence is replaced by evidence of more trials only.

CREATE TABLE audits (
  query           bigint PRIMARY KEY REFERENCES queries ON DELETE CASCADE,
  state           text NOT NULL,
  verdict         text NOT NULL,
  trials          bigint NOT NULL,
  epsilon_lower   float8,
  processes       integer NOT NULL,
  data_epoch      text NOT NULL,
  progress        bytea,
  parsing         integer NOT NULL DEFAULT 0,
  updated         timestamptz NOT NULL DEFAULT now(),
  engine_epoch    text NOT NULL DEFAULT '',
  violation       jsonb,
  watch           bytea,
  evidence_trials bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN audits.processes IS 'how often the evidence began: each time has its share of the error rate';
COMMENT ON COLUMN audits.progress IS 'evidence and the facts to go on from; it holds values of results and needs the protection of the raw data';
COMMENT ON COLUMN audits.parsing IS 'restores of the audit that did not complete: its statement may crash the parser';
COMMENT ON COLUMN audits.engine_epoch IS 'version of the engine that gave the evidence; empty = not known';
COMMENT ON COLUMN audits.violation IS 'the latest violation that is not resolved, while the audit may have begun again; NULL = none';
COMMENT ON COLUMN audits.watch IS 'the change detector of a decided audit; it holds values of results and needs the protection of the raw data';
COMMENT ON COLUMN audits.evidence_trials IS 'trials of the evidence in progress, on all copies; evidence of fewer does not replace it unless the audit has begun again';

CREATE TABLE former_evidence (
  query           bigint PRIMARY KEY REFERENCES queries ON DELETE CASCADE,
  at              timestamptz NOT NULL DEFAULT now(),
  processes       integer NOT NULL,
  verdict         text NOT NULL,
  trials          bigint NOT NULL,
  evidence_trials bigint NOT NULL,
  epsilon_lower   float8,
  data_epoch      text NOT NULL,
  engine_epoch    text NOT NULL,
  progress        bytea NOT NULL
);
CREATE INDEX ON former_evidence (at);
COMMENT ON TABLE former_evidence IS 'evidence of audits that have begun again, until the new evidence has more trials; columns as in audits';
COMMENT ON COLUMN former_evidence.progress IS 'it holds values of results and needs the protection of the raw data';

CREATE TABLE set_aside (
  query    bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at       timestamptz NOT NULL DEFAULT now(),
  reason   text NOT NULL,
  progress bytea NOT NULL
);
CREATE INDEX ON set_aside (query);
CREATE INDEX ON set_aside (at);
COMMENT ON TABLE set_aside IS 'progress that could not be restored: it is damaged, or a newer version wrote it';

CREATE TABLE events (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query   bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at      timestamptz NOT NULL DEFAULT now(),
  state   text NOT NULL,
  verdict text NOT NULL,
  reason  text NOT NULL
);
CREATE INDEX ON events (query, id);
CREATE INDEX ON events (at);
COMMENT ON TABLE events IS 'the history of each audit: a row for every change of its state or verdict';

-- What operators do with the findings. Rows are only added.

CREATE TABLE actions (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query        bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
  at           timestamptz NOT NULL DEFAULT now(),
  operator     text NOT NULL,
  role         text NOT NULL DEFAULT session_user,
  action       text NOT NULL CHECK (action IN ('accept', 'revoke', 'end', 'reproduce', 'reaudit')),
  reason       text NOT NULL,
  until        timestamptz,
  engine_epoch text NOT NULL DEFAULT '',
  CHECK ((action = 'accept') = (until IS NOT NULL))
);
CREATE INDEX ON actions (query, id) WHERE action <> 'reproduce';
COMMENT ON TABLE actions IS 'accepted violations, the ends of acceptances, reproductions, and wishes for a new audit: who, when, what, why';
COMMENT ON COLUMN actions.operator IS 'as the command gave it; role is the database role';
COMMENT ON COLUMN actions.action IS 'accept; revoke: an operator ended an acceptance; end: its date passed or the engine changed; reproduce; reaudit: the audit begins again';
COMMENT ON COLUMN actions.engine_epoch IS 'engine of the audit at that time; another one ends an acceptance';

CREATE TABLE budget_hours (
  engine  text NOT NULL,
  hour    timestamptz NOT NULL,
  trials  bigint NOT NULL,
  seconds float8 NOT NULL,
  PRIMARY KEY (engine, hour)
);
CREATE INDEX ON budget_hours (hour);
COMMENT ON TABLE budget_hours IS 'what audit.budget counts: trials begun, and seconds in which replay sessions ran statements';

-- The processes that take turns of audits on other machines. The turns that they are given are jobs of the queue.

CREATE TABLE workers (
  id        text PRIMARY KEY,
  engine    text NOT NULL,
  host      text NOT NULL,
  version   text NOT NULL,
  slots     integer NOT NULL,
  started   timestamptz NOT NULL DEFAULT now(),
  heartbeat timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON workers (engine, heartbeat);
COMMENT ON COLUMN workers.slots IS 'how many turns the worker takes at a time';
COMMENT ON COLUMN workers.heartbeat IS 'by this server''s clock; the turns of a worker without heartbeats are taken back';

-- Which turn of an audit is current, and which worker holds it. A job of the queue alone gives no right to write.

CREATE TABLE turns (
  number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  engine  text NOT NULL,
  key     text NOT NULL,
  job     bigint,
  holder  text NOT NULL DEFAULT '',
  hurry   boolean NOT NULL DEFAULT false,
  outcome jsonb,
  given   timestamptz NOT NULL DEFAULT now(),
  taken   timestamptz,
  ended   timestamptz,
  UNIQUE (engine, key)
);
COMMENT ON TABLE turns IS 'the current turn of each audit that a worker has, may take, or has ended; a turn without a row is outdated';
COMMENT ON COLUMN turns.number IS 'of the turn: no two turns have the same';
COMMENT ON COLUMN turns.job IS 'the job of the queue with which a worker gets the turn';
COMMENT ON COLUMN turns.holder IS 'the worker that has taken the turn; empty = none has';
COMMENT ON COLUMN turns.hurry IS 'the worker must end the turn soon';
COMMENT ON COLUMN turns.outcome IS 'what the worker reported at the end; NULL = the turn has not ended';

-- What each analyst received, by the claims of the answers: sums that composition theorems need (internal/odometer).

CREATE TABLE analyst_hours (
  engine      text NOT NULL,
  hour        timestamptz NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  repeated    boolean NOT NULL,
  answers     bigint NOT NULL,
  epsilon     float8 NOT NULL,
  squares     float8 NOT NULL,
  drift       float8 NOT NULL,
  delta       float8 NOT NULL,
  rho         float8 NOT NULL,
  PRIMARY KEY (engine, hour, username, database, application, repeated)
);
COMMENT ON COLUMN analyst_hours.hour IS 'epoch: the sum of the hours that are older than the retention, without applications';
COMMENT ON COLUMN analyst_hours.repeated IS 'the analyst had run the same query before: an engine with a cache repeats its answer';

CREATE TABLE budgets_exceeded (
  engine      text NOT NULL,
  budget      text NOT NULL,
  username    text NOT NULL,
  database    text NOT NULL,
  application text NOT NULL,
  since       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (engine, budget, username, database, application)
);
COMMENT ON TABLE budgets_exceeded IS 'analysts whose answers exceed a budget of the configuration, and for whom an alert was sent';

-- What was sent to the receivers of alerts. The jobs of the deliveries are in the queue, with the kind 'alert'. Messages
-- are text: jsonb rejects \u0000, and a cast of its text to bytea reads backslashes as escapes.

CREATE TABLE alerts (
  id         text PRIMARY KEY,
  engine     text NOT NULL,
  subject    text NOT NULL,
  kind       text NOT NULL,
  severity   text NOT NULL,
  status     text NOT NULL CHECK (status IN ('firing', 'resolved')),
  title      text NOT NULL,
  starts_at  timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  ends_at    timestamptz,
  body       text NOT NULL
);
CREATE INDEX ON alerts (engine, updated_at);
COMMENT ON TABLE alerts IS 'alerts of each engine in their latest state';
COMMENT ON COLUMN alerts.subject IS 'one alert at a time fires for a subject of an engine';
COMMENT ON COLUMN alerts.body IS 'the message as receivers get it, as JSON; no values of rows unless log.reveal is values';

CREATE TABLE deliveries (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  alert    text NOT NULL REFERENCES alerts ON DELETE CASCADE,
  receiver text NOT NULL,
  state    text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  error    text NOT NULL DEFAULT '',
  at       timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  body     text NOT NULL,
  job      bigint
);
CREATE INDEX ON deliveries (alert, id);
CREATE INDEX ON deliveries (id) WHERE state = 'pending';
COMMENT ON TABLE deliveries IS 'messages to receivers: one for the beginning of an alert, one for a higher severity, one for the end';
COMMENT ON COLUMN deliveries.state IS 'pending: it is tried again; failed: every attempt failed, dpwatch alerts retry sends it again';
COMMENT ON COLUMN deliveries.job IS 'the job that sends the message; a pending message without one gets another';

-- +goose Down
DROP TABLE deliveries, alerts, budgets_exceeded, analyst_hours, turns, workers, budget_hours, actions, events, set_aside, former_evidence, audits, samples, skipped,
  query_hours, query_users, queries, captures, spooled, terms, recorders, engines, fleet;
