-- PyDP as functions in PostgreSQL. Those of the schema pydp take arrays, and people_* read the table for them; their last
-- argument is the epsilon.
CREATE EXTENSION plpython3u;
CREATE SCHEMA pydp;

CREATE FUNCTION pydp.count(vals int[], epsilon float8) RETURNS bigint LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.count(vals, epsilon)';
CREATE FUNCTION pydp.sum(vals int[], low int, high int, epsilon float8) RETURNS bigint LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.total(vals, low, high, epsilon)';
CREATE FUNCTION pydp.mean(vals int[], low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.mean(vals, low, high, epsilon)';

CREATE FUNCTION people_count(epsilon float8) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT pydp.count((SELECT array_agg(age) FROM public.people), epsilon)';
CREATE FUNCTION people_sum(low int, high int, epsilon float8) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT pydp.sum((SELECT array_agg(age) FROM public.people), low, high, epsilon)';
CREATE FUNCTION people_mean(low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT pydp.mean((SELECT array_agg(age) FROM public.people), low, high, epsilon)';
