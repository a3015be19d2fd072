WITH a AS (SELECT sum(x) AS s FROM d0.t TABLESAMPLE bernoulli (10)), b AS (SELECT sum(x) AS s FROM d0.t TABLESAMPLE bernoulli (10) REPEATABLE (1)) SELECT a.s, b.s FROM a, b
