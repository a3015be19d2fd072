SELECT sum(x) FROM d0.t
