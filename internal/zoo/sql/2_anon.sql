-- Aggregates with the names and arguments of the anon_func extension of Google's differential privacy library: epsilon
-- is the last argument, bounds stand before it. One row is the privacy unit.
--
-- On an empty set they return NULL, as the extension does and documents: epsilon is an argument of each row, and without
-- rows there is none. So they are differentially private only between datasets where at least one row reaches them. That
-- cannot be fixed behind this interface; noisy(count(*), 1 / epsilon) and dp_count do not have the flaw.
--
-- The transition functions hand the work to the C function behind regr_count, regr_sxx and so on, which keeps
-- {N, Sx, Sxx, Sy, Syy, Sxy}: several times as fast as arithmetic on arrays in SQL or PL/pgSQL. A NULL counts as a row
-- that adds nothing.

-- x = epsilon, y = 1 or 0: the count is Sy, epsilon Sx / N; Sxx > 0 means that epsilon was not the same in all rows.
create function anon_count_step(state double precision[], value anyelement, epsilon double precision)
returns double precision[] language plpgsql immutable parallel safe as $$
begin
  return float8_regr_accum(state, case when value is null then 0 else 1 end, epsilon);
end $$;

-- x = epsilon / sensitivity, y = the value within its bounds.
create function anon_sum_step(
  state double precision[], value double precision, lower double precision, upper double precision, epsilon double precision)
returns double precision[] language plpgsql immutable parallel safe as $$
begin
  if lower > upper then
    raise exception 'the lower bound is above the upper bound' using errcode = 'invalid_parameter_value';
  end if;
  return float8_regr_accum(state,
    case when value is null then 0 else greatest(lower, least(upper, value)) end,
    epsilon / greatest(abs(lower), abs(upper)));
end $$;

-- What both final functions need: the scale of the noise, from Sx / N.
create function anon_scale(state double precision[]) returns double precision
language plpgsql immutable parallel safe as $$
begin
  if state[2] > 0 and state[2] < 'infinity' and state[3] <= 1e-12 * state[2] * state[2] then
    return state[1] / state[2];
  end if;
  raise exception 'epsilon must be positive, finite, and the same in all rows' using errcode = 'invalid_parameter_value';
end $$;

create function anon_count_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return round(state[4] + @zoo@.anon_scale(state) * ln((1 - random()) / (1 - random())));
end $$;

create function anon_sum_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return state[4] + @zoo@.anon_scale(state) * ln((1 - random()) / (1 - random()));
end $$;

create aggregate anon_count(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_final);

create aggregate anon_sum(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_sum_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_sum_final);

create aggregate anon_sum_with_bounds(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_sum_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_sum_final);

-- The mean: half of epsilon for the count, half for the sum of distances from the middle of the bounds. The state is
-- {rows, values, sum of distances, epsilon, lower, upper}.
create function anon_avg_step(
  state double precision[], value double precision, lower double precision, upper double precision, epsilon double precision)
returns double precision[] language plpgsql immutable parallel safe as $$
begin
  if lower > upper or state[1] > 0 and (epsilon, lower, upper) is distinct from (state[4], state[5], state[6]) then
    raise exception 'bounds and epsilon must be the same in all rows, and the lower bound not above the upper'
      using errcode = 'invalid_parameter_value';
  end if;
  if value is null then
    return array[state[1] + 1, state[2], state[3], epsilon, lower, upper];
  end if;
  return array[state[1] + 1, state[2] + 1,
    state[3] + greatest(lower, least(upper, value)) - (lower + upper) / 2, epsilon, lower, upper];
end $$;

create function anon_avg_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
declare
  epsilon double precision := state[4];
  lower double precision := state[5];
  upper double precision := state[6];
  noisy_count double precision;
  noisy_sum double precision;
begin
  if state[1] = 0 then
    return null;
  end if;
  if not (epsilon > 0 and epsilon < 'infinity') then
    raise exception 'epsilon must be positive and finite' using errcode = 'invalid_parameter_value';
  end if;
  noisy_count := state[2] + 2 / epsilon * ln((1 - random()) / (1 - random()));
  noisy_sum := state[3] + (upper - lower) / epsilon * ln((1 - random()) / (1 - random()));
  return greatest(lower, least(upper, (lower + upper) / 2 + noisy_sum / greatest(1, noisy_count)));
end $$;

create aggregate anon_avg(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_avg_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_avg_final);

create aggregate anon_avg_with_bounds(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_avg_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_avg_final);
