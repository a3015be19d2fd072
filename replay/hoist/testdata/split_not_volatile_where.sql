SELECT sum(x) + laplace(1) FROM d0.t WHERE random() < 0.5
