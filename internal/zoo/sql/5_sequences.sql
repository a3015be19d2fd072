-- Wrong on purpose across the queries of one session: each query alone keeps its claim, but their answers together reveal more than
-- the sum of the claims. What a session keeps stands in settings of it, which are there in read-only transactions too.

-- The number that the session keeps under a name; NULL = none yet.
create function session_number(name text) returns double precision
language sql volatile parallel restricted as $$ select nullif(current_setting('zoo.' || name, true), '')::double precision $$;

create function session_keep(name text, number double precision) returns double precision
language sql volatile parallel restricted as $$ select set_config('zoo.' || name, number::text, false)::double precision $$;

create function laplace(scale double precision) returns double precision
language sql volatile parallel restricted as $$ select scale * ln((1 - random()) / (1 - random())) $$;

-- One seed for a session: all its counts get the same noise, in units of their scales.
create function anon_count_session_seed_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return round(state[4] + @zoo@.anon_scale(state) *
    coalesce(@zoo@.session_number('seed'), @zoo@.session_keep('seed', @zoo@.laplace(1))));
end $$;

create aggregate anon_count_session_seed(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_session_seed_final);

-- A total with the noise of the parts that were asked for before, so that the answers add up. It is also the total of rows that are
-- in none of these parts: their number follows without noise.
create function anon_count_part_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
declare
  noise double precision;
begin
  if state[1] = 0 then
    return null;
  end if;
  noise := round(@zoo@.laplace(@zoo@.anon_scale(state)));
  perform @zoo@.session_keep('parts', coalesce(@zoo@.session_number('parts'), 0) + noise);
  return state[4] + noise;
end $$;

create aggregate anon_count_part(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_part_final);

create function anon_count_total_final(state double precision[]) returns bigint
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return state[4] + coalesce(@zoo@.session_number('parts'), round(@zoo@.laplace(@zoo@.anon_scale(state))));
end $$;

create aggregate anon_count_total(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_total_final);

-- A running noise: each answer moves it by a tenth of the scale. Two answers differ by their true values and little noise.
create function anon_count_running_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
declare
  scale double precision;
  kept double precision;
begin
  if state[1] = 0 then
    return null;
  end if;
  scale := @zoo@.anon_scale(state);
  kept := @zoo@.session_number('running');
  return state[4] + scale * @zoo@.session_keep('running', coalesce(kept + @zoo@.laplace(0.1), @zoo@.laplace(1)));
end $$;

create aggregate anon_count_running(value anyelement, epsilon double precision) (
  sfunc = anon_count_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_count_running_final);

-- An average from the noisy sum that the session has already received, over the exact count: the quotient of both answers is the
-- count. Alone, the average has the noise of a sum: over n rows it keeps the claim but for 1/n and a probability of exp(-epsilon n).
create function anon_sum_kept_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return @zoo@.session_keep('sum', state[4] + @zoo@.laplace(@zoo@.anon_scale(state)));
end $$;

create aggregate anon_sum_kept(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_sum_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_sum_kept_final);

create function anon_avg_kept_final(state double precision[]) returns double precision
language plpgsql volatile parallel restricted as $$
begin
  if state[1] = 0 then
    return null;
  end if;
  return coalesce(@zoo@.session_number('sum'), state[4] + @zoo@.laplace(@zoo@.anon_scale(state))) / state[1];
end $$;

create aggregate anon_avg_kept(
  value double precision, lower double precision, upper double precision, epsilon double precision) (
  sfunc = anon_sum_step, stype = double precision[], initcond = '{0,0,0,0,0,0}', finalfunc = anon_avg_kept_final);
