-- A stand-in, in SQL, for the local differential privacy of PostgreSQL Anonymizer 3: anon.ldp_grrm(value, epsilon, max_v) and
-- anon.ldp_grrm_pttt(value, kept_percentage, max_v), generalized randomized response on the values 1 to max_v.
CREATE SCHEMA anon;

-- The value is kept with probability (e^epsilon - 1) / (e^epsilon + max_v - 1), and otherwise replaced with another one.
CREATE FUNCTION anon.ldp_grrm(value int, epsilon float8, max_v int) RETURNS int LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < (exp(epsilon) - 1) / (exp(epsilon) + max_v - 1) THEN value
         ELSE (value + floor(random() * (max_v - 1))::int) % max_v + 1 END
$$;
-- kept_percentage stands for the epsilon with which this is the probability to keep the value.
CREATE FUNCTION anon.ldp_grrm_pttt(value int, kept_percentage float8, max_v int) RETURNS int LANGUAGE sql VOLATILE AS $$
  SELECT anon.ldp_grrm(value, ln((1 + kept_percentage * (max_v - 1)) / (1 - kept_percentage)), max_v)
$$;
