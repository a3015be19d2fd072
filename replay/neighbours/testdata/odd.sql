-- What production databases have besides: types and collations of their own, names that collide once they are in one schema,
-- partitions by a hash of an enum, functions over rows, views that a shadow database cannot have.
CREATE SCHEMA app;
CREATE SCHEMA "name";
CREATE TYPE app.stage AS ENUM ('lead', 'won', 'lost', 'é');
CREATE TYPE public.timerange AS RANGE (subtype = time);
CREATE COLLATION public.plain (provider = libc, locale = 'C');
CREATE DOMAIN app.positive AS int CHECK (VALUE > 0);
CREATE DOMAIN app.small AS app.positive CHECK (VALUE < 1000000);
CREATE TYPE app.inner_t AS (x app.small, y app.stage[]);
CREATE TYPE app.outer_t AS (i app.inner_t, z text);
CREATE TYPE app.person_t AS (id bigint, nick text, shift public.timerange, shifts public.timemultirange);

CREATE TABLE public.people OF app.person_t (PRIMARY KEY (id));
CREATE TABLE "name"."name" (
  "name" bigint REFERENCES public.people (id), "by" text COLLATE public.plain, "function" text, "statistics" app.small,
  "select" int GENERATED ALWAYS AS (length("by") + "statistics") STORED, xs app.outer_t[]
);
CREATE INDEX same_name ON "name"."name" ("by");
CREATE STATISTICS "name"."function" ON "by", "function" FROM "name"."name";
ALTER STATISTICS "name"."function" SET STATISTICS 300;
CREATE TABLE app.t1 (id int, person bigint REFERENCES public.people, k int, j int, UNIQUE (k, j));
CREATE INDEX same_name ON app.t1 (id);
CREATE TABLE app.base (id int, person bigint REFERENCES public.people);
CREATE TABLE app.derived (id int, person bigint REFERENCES public.people, q int);
ALTER TABLE app.derived ADD CONSTRAINT nn CHECK (id > 0) NOT VALID;
ALTER TABLE app.derived INHERIT app.base;
ALTER TABLE app.base ADD CONSTRAINT nn CHECK (id > 0) NOT VALID;
CREATE TABLE app.second (more int) INHERITS (app.base);
ALTER TABLE app.second ADD FOREIGN KEY (person) REFERENCES public.people;
CREATE TABLE app.third () INHERITS (app.second);
ALTER TABLE app.third ADD FOREIGN KEY (person) REFERENCES public.people;
CREATE TABLE app.events (person bigint REFERENCES public.people, kind app.stage NOT NULL, at date) PARTITION BY LIST ((at > '2024-06-01'));
CREATE TABLE app.events_new PARTITION OF app.events FOR VALUES IN (true);
CREATE TABLE app.events_old PARTITION OF app.events DEFAULT PARTITION BY HASH (kind);
CREATE TABLE app.events_old0 (at date, gone int, kind app.stage NOT NULL, person bigint);
ALTER TABLE app.events_old0 DROP COLUMN gone;
ALTER TABLE app.events_old ATTACH PARTITION app.events_old0 FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE app.events_old1 PARTITION OF app.events_old FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE app.events_old2 PARTITION OF app.events_old FOR VALUES WITH (MODULUS 3, REMAINDER 2);
CREATE TABLE app.bookings (person bigint REFERENCES public.people, room int4range, during daterange, EXCLUDE USING gist (room WITH =, during WITH &&));

CREATE FUNCTION app.title(p public.people) RETURNS text LANGUAGE sql STABLE AS $$ SELECT p.nick || '!' $$;
CREATE FUNCTION app.n_t1(who bigint) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM APP.T1 t WHERE t.person = who $$;
CREATE FUNCTION app.label(x int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'n' || x $$;
CREATE FUNCTION app.label(x app.stage) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM app.events e WHERE e.kind = x $$;
CREATE FUNCTION app.total() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM app.t1); END $$;
CREATE VIEW app.v_rows AS SELECT p.id, app.title(p.*) AS title, app.n_t1(p.id) AS n FROM public.people p;
CREATE VIEW app.v_labels AS SELECT app.label(k) AS l, app.label('won'::app.stage) AS m FROM app.t1;
CREATE VIEW app.v_shadowed AS WITH people AS (SELECT 1 AS id), m AS MATERIALIZED (SELECT * FROM public.people)
  SELECT people.id, m.nick FROM people JOIN m ON m.id > people.id;
CREATE VIEW app.v_fields AS SELECT (xs[1]).i.x AS x, (xs[1]).i.y[1] AS y FROM "name"."name";
CREATE VIEW app.v_missing AS SELECT id, app.total() AS total FROM app.t1;
CREATE VIEW app.v_over_missing AS SELECT * FROM app.v_missing;

INSERT INTO public.people SELECT g, 'n' || g, public.timerange('08:00', '12:00'), '{[08:00,09:00)}' FROM generate_series(1, 30) g;
INSERT INTO "name"."name" ("name", "by", "function", "statistics", xs) SELECT id, 'b' || id, 'f', id, ARRAY[ROW(ROW(3, ARRAY['won', 'é']::app.stage[]), 'z "q"')::app.outer_t] FROM public.people;
INSERT INTO app.t1 SELECT id, id, id, id + 1 FROM public.people;
INSERT INTO app.base SELECT id, id FROM public.people;
INSERT INTO app.derived SELECT id, id, 1 FROM public.people;
INSERT INTO app.second SELECT id, id, 2 FROM public.people;
INSERT INTO app.third SELECT id, id, 3 FROM public.people;
INSERT INTO app.events SELECT id, s, date '2024-05-01' + id::int * 2 FROM public.people, unnest(enum_range(NULL::app.stage)) s;
INSERT INTO app.bookings SELECT id, int4range(id::int, id::int + 1), daterange('2024-01-01', '2024-02-01') FROM public.people;
