-- Plain noise, to be put around a built-in aggregate: noisy(count(*), 1 / 0.5).
--
-- random() is in [0, 1), so 1 - random() is in (0, 1] and its logarithm is finite. The difference of two exponentials is a
-- Laplace variable: -ln(u) + ln(v) = ln(v / u). Both functions are one expression that uses each argument once: the
-- planner inlines them.
--
-- This is noise in double precision, with the known weakness of its low bits (Mironov 2012): good enough to show and to
-- test an auditor, not to protect people.

create function noisy(value double precision, scale double precision) returns double precision
language sql volatile parallel restricted as $$
  select value + scale * ln((1 - random()) / (1 - random()))
$$;
comment on function noisy(double precision, double precision) is
  'value + Laplace noise of the given scale (sensitivity / epsilon)';

create function noisy_gauss(value double precision, sigma double precision) returns double precision
language sql volatile parallel restricted as $$
  select value + sigma * sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random())
$$;
comment on function noisy_gauss(double precision, double precision) is
  'value + Gaussian noise of the given standard deviation (Box and Muller)';
