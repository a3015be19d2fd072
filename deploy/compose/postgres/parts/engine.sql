-- The engine: Laplace noise of the given scale, which is sensitivity / epsilon. An example, with the known weakness of noise in
-- double precision (Mironov 2012): not for real data.
CREATE FUNCTION noisy(value double precision, scale double precision) RETURNS double precision
LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
  SELECT value + scale * ln((1 - random()) / (1 - random()))
$$;
