-- Person 7 has answered 2, everybody else 1.
CREATE TABLE survey AS SELECT g AS id, CASE WHEN g = 7 THEN 2 ELSE 1 END AS answer FROM generate_series(1, 20) g;
ALTER TABLE survey ADD PRIMARY KEY (id);

-- The masking rule. With the extension: SECURITY LABEL FOR anon ON COLUMN survey.answer IS 'MASKED WITH FUNCTION anon.ldp_grrm(answer, 1.0, 2)'.
-- Without it the server has no provider anon, and a superuser can only write what that statement writes.
INSERT INTO pg_seclabel (objoid, classoid, objsubid, provider, label)
  SELECT attrelid, 'pg_class'::regclass, attnum, 'anon', 'MASKED WITH FUNCTION anon.ldp_grrm(answer, 1.0, 2)'
  FROM pg_attribute WHERE attrelid = 'survey'::regclass AND attname = 'answer';

-- Two masking views: the first follows the rule, the second keeps a value with probability 0.9, an epsilon of 2.2.
CREATE VIEW survey_masked AS SELECT id, anon.ldp_grrm(answer, 1.0, 2) AS answer FROM survey;
CREATE VIEW survey_kept AS SELECT id, anon.ldp_grrm_pttt(answer, 0.9, 2) AS answer FROM survey;
