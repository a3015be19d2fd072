-- An aggregate that takes its epsilon from the session: SET dp.epsilon = '0.5'. It knows epsilon without having seen a
-- row, so that it returns noise on an empty set too.
create function dp_count_final(state bigint) returns double precision
language plpgsql volatile parallel restricted as $$
declare
  epsilon double precision := nullif(current_setting('dp.epsilon', true), '');
begin
  if not coalesce(epsilon > 0 and epsilon < 'infinity', false) then
    raise exception 'dp.epsilon must be set to a positive number' using errcode = 'invalid_parameter_value';
  end if;
  return state + 1 / epsilon * ln((1 - random()) / (1 - random()));
end $$;

create aggregate dp_count("any") (
  sfunc = int8inc_any, stype = bigint, initcond = '0', finalfunc = dp_count_final);
