-- What the engine and the shadow database both have.
CREATE EXTENSION IF NOT EXISTS citext; CREATE EXTENSION IF NOT EXISTS pg_trgm; CREATE EXTENSION IF NOT EXISTS unaccent; CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE TYPE public.tier AS ENUM ('free', 'pro', 'business');
CREATE TABLE public.products (id int PRIMARY KEY, name text, category text, brand text, price numeric(10,2), weight float8, added date);
INSERT INTO public.products SELECT i, 'Product ' || i, (ARRAY['Books', 'Games', 'Garden', 'Tools'])[1 + i % 4], 'Brand#' || i % 5, 5 + i * 1.25, i * 0.3, date '2019-01-01' + i FROM generate_series(1, 20) i;
CREATE TABLE public.stores (id int PRIMARY KEY, city text, country text, region text);
INSERT INTO public.stores SELECT i, 'City ' || i, (ARRAY['DE', 'FR', 'US'])[1 + i % 3], (ARRAY['EMEA', 'AMER'])[1 + i % 2] FROM generate_series(1, 6) i;
CREATE TABLE public.calendar (day date PRIMARY KEY, week int, month int, quarter int, year int, is_weekend bool);
INSERT INTO public.calendar SELECT d, extract(week FROM d), extract(month FROM d), extract(quarter FROM d), extract(year FROM d), extract(isodow FROM d) > 5 FROM generate_series(date '2023-01-01', date '2024-12-31', '1 day') d;
CREATE FUNCTION public.safe_divide(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 / NULLIF($2, 0)';
CREATE FUNCTION public.laplace(value float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + epsilon - epsilon';
