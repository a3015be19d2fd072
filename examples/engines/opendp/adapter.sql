-- OpenDP as functions in PostgreSQL. Those of the schema odp take arrays, and people_* read the table for them; their last
-- argument is the epsilon.
CREATE EXTENSION plpython3u;
CREATE SCHEMA odp;

CREATE FUNCTION odp.count(vals int[], epsilon float8) RETURNS bigint LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.count(vals, epsilon)';
CREATE FUNCTION odp.sum(vals int[], low int, high int, epsilon float8) RETURNS bigint LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.total(vals, low, high, epsilon)';
CREATE FUNCTION odp.histogram(vals int[], categories int[], epsilon float8) RETURNS bigint[] LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.histogram(vals, categories, epsilon)';
CREATE FUNCTION odp.group_counts(vals text[], keys text[], epsilon float8) RETURNS bigint[] LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.group_counts(vals, keys, epsilon)';

CREATE FUNCTION people_count(epsilon float8) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT odp.count((SELECT array_agg(age) FROM public.people), epsilon)';
CREATE FUNCTION people_sum(low int, high int, epsilon float8) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT odp.sum((SELECT array_agg(age) FROM public.people), low, high, epsilon)';
CREATE FUNCTION people_histogram(categories int[], epsilon float8) RETURNS bigint[] LANGUAGE sql VOLATILE
  AS 'SELECT odp.histogram((SELECT array_agg(age / 10) FROM public.people), categories, epsilon)';
CREATE FUNCTION people_cities(keys text[], epsilon float8) RETURNS bigint[] LANGUAGE sql VOLATILE
  AS 'SELECT odp.group_counts((SELECT array_agg(city) FROM public.people), keys, epsilon)';
