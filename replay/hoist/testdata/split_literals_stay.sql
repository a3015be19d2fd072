SELECT 'total' AS what, coalesce(sum(x), 0) * 2 + laplace(1), $1::int FROM d0.t WHERE y = $2
