-- PipelineDP as functions in PostgreSQL. Those of the schema pdp take arrays, and people_* read the table for them. The
-- last argument is the epsilon; of people_vector_sum the last but one, and the delta is the last.
CREATE EXTENSION plpython3u;
CREATE SCHEMA pdp;

CREATE FUNCTION pdp.scalar(metric text, vals float8[], low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.scalar(metric, vals, low, high, epsilon)';
CREATE FUNCTION pdp.counts(vals text[], keys text[], epsilon float8) RETURNS float8[] LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.counts(vals, keys, epsilon)';
CREATE FUNCTION pdp.vector_sum(xs float8[], ys float8[], high float8, epsilon float8, delta float8) RETURNS float8[] LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.vector_sum(xs, ys, high, epsilon, delta)';

CREATE FUNCTION people_count(epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS $$SELECT pdp.scalar('COUNT', (SELECT array_agg(age) FROM public.people), NULL, NULL, epsilon)$$;
CREATE FUNCTION people_age(metric text, low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT pdp.scalar(metric, (SELECT array_agg(age) FROM public.people), low, high, epsilon)';
CREATE FUNCTION people_cities(keys text[], epsilon float8) RETURNS float8[] LANGUAGE sql VOLATILE
  AS 'SELECT pdp.counts((SELECT array_agg(city) FROM public.people), keys, epsilon)';
CREATE FUNCTION people_income(metric text, low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT pdp.scalar(metric, (SELECT array_agg(income) FROM public.people), low, high, epsilon)';
CREATE FUNCTION people_vector_sum(high float8, epsilon float8, delta float8) RETURNS float8[] LANGUAGE sql VOLATILE
  AS 'SELECT pdp.vector_sum((SELECT array_agg(x ORDER BY id) FROM public.people), (SELECT array_agg(y ORDER BY id) FROM public.people), high, epsilon, delta)';
