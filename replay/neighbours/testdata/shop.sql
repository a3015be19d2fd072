-- A production-like database: 12 tables with composite keys, a self reference, a cycle, partitions, inheritance, views,
-- a materialised view, enums, domains, a composite type, quoted names, identity and generated columns, a dropped column.
CREATE SCHEMA app;
CREATE TYPE public.mood AS ENUM ('sad', 'it''s ok', 'happy');
CREATE DOMAIN app.amount AS numeric(12,2) DEFAULT 0 CONSTRAINT positive CHECK (VALUE >= 0);
CREATE TYPE app.place AS (street text, town text);
CREATE SEQUENCE public.numbers START 100 INCREMENT 5;

-- 1: the unit's table, with a reference to itself that is no path
CREATE TABLE public.users (
  gone text,
  id int PRIMARY KEY,
  email text UNIQUE,
  mood public.mood NOT NULL DEFAULT 'happy'::public.mood,
  income app.amount,
  manager_id int REFERENCES public.users (id),
  home app.place
);
ALTER TABLE public.users DROP COLUMN gone;
CREATE INDEX users_lower ON public.users (lower(email)) WHERE mood <> 'sad';
-- 2: identity, default from a sequence that nobody owns, generated
CREATE TABLE public.accounts (
  id bigint GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 2) PRIMARY KEY,
  user_id int REFERENCES public.users (id),
  number int DEFAULT nextval('public.numbers'),
  opened date DEFAULT '2024-01-01',
  year int GENERATED ALWAYS AS (EXTRACT(year FROM opened)) STORED
);
-- 3: a composite key
CREATE TABLE app.orders (
  account_id bigint REFERENCES public.accounts (id),
  seq serial,
  placed timestamptz NOT NULL DEFAULT '2024-01-01',
  total app.amount,
  PRIMARY KEY (account_id, seq)
) WITH (fillfactor = 90);
CREATE STATISTICS app.orders_stat (dependencies, ndistinct) ON account_id, total FROM app.orders;
ALTER TABLE app.orders ALTER COLUMN total SET STATISTICS 500;
-- 4: by two paths
CREATE TABLE app."Order Items" (
  account_id bigint, seq int, line int,
  "Product Id" int,
  gift_for int REFERENCES public.users (id),
  price double precision CHECK (price >= 0),
  FOREIGN KEY (account_id, seq) REFERENCES app.orders (account_id, seq) ON DELETE CASCADE,
  PRIMARY KEY (account_id, seq, line)
);
CREATE INDEX "Items of a Product" ON app."Order Items" ("Product Id", price DESC NULLS LAST) INCLUDE (line);
-- 5: a self reference that is a path
CREATE TABLE public.comments (id int PRIMARY KEY, user_id int NOT NULL REFERENCES public.users (id), parent_id int, body text);
ALTER TABLE public.comments ADD FOREIGN KEY (parent_id) REFERENCES public.comments (id);
-- 6: partitions of partitions
CREATE TABLE public.events (id bigint NOT NULL, user_id int REFERENCES public.users (id), at date NOT NULL, kind int NOT NULL, PRIMARY KEY (id, at, kind))
  PARTITION BY RANGE (at);
CREATE TABLE public.events_2023 (kind int NOT NULL, id bigint NOT NULL, at date NOT NULL, user_id int);
ALTER TABLE public.events ATTACH PARTITION public.events_2023 FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE public.events_2024 PARTITION OF public.events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY LIST (kind);
CREATE TABLE public.events_2024_a PARTITION OF public.events_2024 FOR VALUES IN (0, 1);
CREATE TABLE public.events_2024_b PARTITION OF public.events_2024 DEFAULT;
CREATE INDEX events_user ON public.events (user_id);
-- 7 and 8: a cycle
CREATE TABLE public.threads (id int PRIMARY KEY, first_post int);
CREATE TABLE public.posts (id int PRIMARY KEY, thread_id int REFERENCES public.threads (id), user_id int REFERENCES public.users (id));
ALTER TABLE public.threads ADD FOREIGN KEY (first_post) REFERENCES public.posts (id);
-- 9: inheritance
CREATE TABLE public.documents (id int PRIMARY KEY, user_id int, title text COLLATE "C" NOT NULL, CHECK (id > 0));
CREATE TABLE public.contracts (signed date) INHERITS (public.documents);
ALTER TABLE public.contracts ADD FOREIGN KEY (user_id) REFERENCES public.users (id);
-- 10: a path without a foreign key, to a column that is not the unit's key
CREATE TABLE public.visits (mail text, page text, ms real);
-- 11: a name with quotes in it
CREATE TABLE public."we""ird.Table" ("user" int REFERENCES public.users (id), "select" public.mood[], amounts app.amount[]);
-- 12: public
CREATE TABLE public.products (id int PRIMARY KEY, name text);

CREATE FUNCTION public.spent(who int) RETURNS numeric LANGUAGE sql STABLE AS
  $$ WITH users AS (SELECT 1) SELECT sum(o.total) FROM app.orders o JOIN accounts a ON a.id = o.account_id WHERE a.user_id = who $$;
CREATE FUNCTION app.heads(app.place) RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC SELECT count(*) FROM public.users; END;
CREATE VIEW public.rich AS SELECT u.id, u.email, public.spent(u.id) AS spent, 'sad'::public.mood AS m FROM public.users u WHERE income > 500;
CREATE VIEW public.rich_items AS SELECT r.id, i.price, p.name FROM public.rich r JOIN public.accounts a ON a.user_id = r.id
  JOIN app."Order Items" i ON i.account_id = a.id LEFT JOIN public.products p ON p.id = i."Product Id";
CREATE MATERIALIZED VIEW public.per_mood AS SELECT mood, count(*) AS n, app.heads(NULL) AS heads FROM public.users GROUP BY mood;
CREATE UNIQUE INDEX per_mood_key ON public.per_mood (mood);
CREATE TABLE public.secrets (x int);
CREATE VIEW public.left_out AS SELECT u.id FROM public.users u, public.secrets;

INSERT INTO public.products SELECT i, 'product ' || i FROM generate_series(1, 20) i;
INSERT INTO public.users SELECT i, 'user' || i || '@example.org', (ARRAY['sad', 'it''s ok', 'happy'])[1 + i % 3]::public.mood, i * 100,
  nullif(i / 2, 0), ROW('Road ' || i, 'Town, "x"')::app.place FROM generate_series(1, 20) i;
INSERT INTO public.accounts (user_id, opened) SELECT nullif(i % 21, 0), date '2020-01-01' + i * 40 FROM generate_series(1, 60) i;
INSERT INTO app.orders (account_id, placed, total) SELECT a.id, timestamptz '2024-01-01 UTC' + n * interval '1 day', (a.id * n) % 97
  FROM public.accounts a, generate_series(1, 3) n;
INSERT INTO app."Order Items" SELECT o.account_id, o.seq, l, 1 + o.seq % 20, CASE WHEN o.seq % 5 = 0 THEN 1 + o.seq % 20 END, l * 1.5
  FROM app.orders o, generate_series(1, 2) l;
INSERT INTO public.comments SELECT i, 1 + (i * 7) % 20, CASE WHEN i > 5 THEN i / 3 END, 'text ' || i FROM generate_series(1, 100) i;
INSERT INTO public.events SELECT i, CASE WHEN i % 9 > 0 THEN 1 + i % 20 END, date '2023-06-01' + i, i % 4 FROM generate_series(1, 400) i;
INSERT INTO public.threads SELECT i FROM generate_series(1, 10) i;
INSERT INTO public.posts SELECT i, 1 + i % 10, 1 + (i * 3) % 20 FROM generate_series(1, 40) i;
UPDATE public.threads SET first_post = id + 3;
INSERT INTO public.documents SELECT i, 1 + i % 20, 'doc ' || i FROM generate_series(1, 30) i;
INSERT INTO public.contracts SELECT i, 1 + i % 20, 'contract ' || i, '2024-02-02' FROM generate_series(31, 60) i;
INSERT INTO public.visits SELECT 'user' || (1 + i % 22) || '@example.org', 'page ' || i % 6, i FROM generate_series(1, 200) i;
INSERT INTO public."we""ird.Table" SELECT i, ARRAY['sad', 'happy']::public.mood[], ARRAY[i, i + 0.5]::app.amount[] FROM generate_series(1, 20) i;
SELECT setval('public.numbers', 777);
REFRESH MATERIALIZED VIEW public.per_mood;
ANALYZE;
