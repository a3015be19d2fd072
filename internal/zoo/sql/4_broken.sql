-- Wrong on purpose, each in one way, with the arguments of the right ones.

-- Half the noise: the real epsilon is twice the one that is asked for.
create function anon_count_half_noise_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return round(state[4] + @zoo@.anon_scale(state) / 2 * ln((1 - random()) / (1 - random())));
end $$;

create aggregate anon_count_half_noise(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_half_noise_final);

-- The bounds set the noise, but nobody clips the values to them.
create function anon_sum_unclipped_step(
  state double precision[], value double precision, lower double precision, upper double precision, epsilon double precision)
returns double precision[] language plpgsql immutable parallel safe as $$
begin
  return float8_regr_accum(state, coalesce(value, 0), epsilon / greatest(abs(lower), abs(upper)));
end $$;

create aggregate anon_sum_unclipped(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_sum_unclipped_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_sum_final);

-- No bounds at all: the noise is made for the average row.
create function anon_sum_unbounded_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return state[4] + abs(state[4]) / state[1] * @zoo@.anon_scale(state) * ln((1 - random()) / (1 - random()));
end $$;

create aggregate anon_sum_unbounded(value double precision, epsilon double precision) (
  sfunc = float8_regr_accum, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_sum_unbounded_final);

-- The same noise every time, from a fixed seed. Afterwards the session gets a fresh seed: only this function is broken,
-- not what the session asks next.
create function anon_count_seeded_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
declare
  noise double precision;
begin
  if state[1] = 0 then
    return null;
  end if;
  perform setseed(0.42);
  noise := ln((1 - random()) / (1 - random()));
  perform setseed(('x' || left(replace(gen_random_uuid()::text, '-', ''), 7))::bit(28)::int / 268435456.0);
  return round(state[4] + @zoo@.anon_scale(state) * noise);
end $$;

create aggregate anon_count_seeded(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_seeded_final);
