SELECT sum(x) + mystery(1) FROM d0.t
