WITH "A b" ("x y") AS (SELECT sum("X") FROM "d0"."T") SELECT "x y" + laplace(1) AS "N" FROM "A b"
