SELECT round(random()) AS r, count(*) FROM d0.t GROUP BY 1
