-- A stand-in, in SQL, for a PostgreSQL extension with DP aggregates: anon_count(value, epsilon) and anon_sum_with_bounds(value, low, high, epsilon).
-- Names, arguments and the NULL for an empty set are those of the extension; the noise is not: it is Laplace noise from random(), rounded to whole numbers,
-- for tests only. A row is the privacy unit.
CREATE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT scale * (ln(1 - random()) - ln(1 - random()))';

-- The state is {n, epsilon}, or {sum, bound, epsilon}; NULL before the first row.
CREATE FUNCTION anon_count_step(state float8[], value anyelement, epsilon float8) RETURNS float8[] LANGUAGE sql IMMUTABLE
  AS 'SELECT ARRAY[coalesce(state[1], 0) + (value IS NOT NULL)::int, epsilon]';
CREATE FUNCTION anon_count_result(state float8[]) RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT round(state[1] + laplace(1 / state[2]))::bigint';
CREATE AGGREGATE anon_count(value anyelement, epsilon float8) (SFUNC = anon_count_step, STYPE = float8[], FINALFUNC = anon_count_result);

CREATE FUNCTION anon_sum_step(state float8[], value float8, low float8, high float8, epsilon float8) RETURNS float8[] LANGUAGE sql IMMUTABLE
  AS 'SELECT ARRAY[coalesce(state[1], 0) + coalesce(greatest(low, least(high, value)), 0), greatest(abs(low), abs(high)), epsilon]';
CREATE FUNCTION anon_sum_result(state float8[]) RETURNS float8 LANGUAGE sql VOLATILE
  AS 'SELECT round(state[1] + laplace(state[2] / state[3]))';
CREATE AGGREGATE anon_sum_with_bounds(value float8, low float8, high float8, epsilon float8)
  (SFUNC = anon_sum_step, STYPE = float8[], FINALFUNC = anon_sum_result);
