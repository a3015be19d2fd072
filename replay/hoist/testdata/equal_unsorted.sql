SELECT t.uid + random() AS b, uid + random() AS c FROM d0.t WHERE x > 3
