SELECT uid AS k, uid + random() AS n, uid + laplace(1) FROM d0.t WHERE x > 3 GROUP BY k ORDER BY uid + random()
