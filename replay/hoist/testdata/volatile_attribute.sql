WITH a AS (SELECT t.random AS s FROM d0.t) SELECT s FROM a
