SELECT uid + random() AS n, uid AS k FROM d0.t GROUP BY k ORDER BY uid + random() DESC LIMIT 1
