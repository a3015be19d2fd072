-- diffprivlib as functions in PostgreSQL. Those of the schema dpl take arrays, and people_* read the table for them; their
-- last argument is the epsilon.
CREATE EXTENSION plpython3u;
CREATE SCHEMA dpl;

CREATE FUNCTION dpl.tool(name text, vals float8[], low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.tool(name, vals, low, high, epsilon)';
CREATE FUNCTION dpl.count(vals float8[], epsilon float8) RETURNS bigint LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.count(vals, epsilon)';
CREATE FUNCTION dpl.histogram(vals float8[], bins int, low float8, high float8, epsilon float8) RETURNS bigint[] LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.histogram(vals, bins, low, high, epsilon)';
CREATE FUNCTION dpl.slope(x float8[], y float8[], high_x float8, high_y float8, epsilon float8) RETURNS float8 LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.slope(x, y, high_x, high_y, epsilon)';
CREATE FUNCTION dpl.laplace(answer float8, sensitivity float8, epsilon float8) RETURNS float8 LANGUAGE plpython3u VOLATILE
  AS 'import adapter; return adapter.laplace(answer, sensitivity, epsilon)';

-- people_count counts who is of an age or older. dpl.count cuts its answer off at the number of rows, so a count of all rows would show that number.
CREATE FUNCTION people_count(from_age float8, epsilon float8) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT dpl.count((SELECT array_agg((age >= from_age)::int::float8) FROM public.people), epsilon)';
-- people_mean and others round the answer to hundredths: the low bits of Laplace noise give the sum away.
CREATE FUNCTION people_mean(low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS $$SELECT round(dpl.tool('mean', (SELECT array_agg(age) FROM public.people), low, high, epsilon)::numeric, 2)::float8$$;
CREATE FUNCTION people_spent(low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS $$SELECT round(dpl.tool('mean', (SELECT array_agg(spent) FROM public.people), low, high, epsilon)::numeric, 2)::float8$$;
CREATE FUNCTION people_histogram(bins int, low float8, high float8, epsilon float8) RETURNS bigint[] LANGUAGE sql VOLATILE
  AS 'SELECT dpl.histogram((SELECT array_agg(age) FROM public.people), bins, low, high, epsilon)';
CREATE FUNCTION people_income(name text, low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT dpl.tool(name, (SELECT array_agg(income) FROM public.people), low, high, epsilon)';
CREATE FUNCTION people_score(name text, low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT round(dpl.tool(name, (SELECT array_agg(score) FROM public.people), low, high, epsilon)::numeric, 2)::float8';
CREATE FUNCTION people_slope(high_x float8, high_y float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS $$SELECT round(dpl.slope((SELECT array_agg(spent ORDER BY id) FROM public.people), (SELECT array_agg(age ORDER BY id) FROM public.people),
      high_x, high_y, epsilon)::numeric, 2)::float8$$;
-- people_rich counts who spent more than a limit.
CREATE FUNCTION people_rich(above float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT dpl.laplace((SELECT pg_catalog.count(*) FILTER (WHERE spent > above) FROM public.people), 1, epsilon)';
