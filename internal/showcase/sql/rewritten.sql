WITH "join_1" ("f_user", "f_income", "f_class", "f_id", "f_unit", "f_store", "f_other", "f_spent") AS (
  SELECT * FROM "users" AS "_LEFT_" JOIN "transactions" AS "_RIGHT_" ON ("_LEFT_"."id") = ("_RIGHT_"."user_id")
),
"map_1" ("_PRIVACY_UNIT_", "_PRIVACY_UNIT_WEIGHT_", "store_id", "spent") AS (
  SELECT MD5(CAST("f_user" AS TEXT)), 1, "f_store", "f_spent" FROM "join_1" WHERE ("f_store") >= (196)
),
"reduce_1" ("_PRIVACY_UNIT_", "store_id", "spent") AS (
  SELECT "_PRIVACY_UNIT_", "store_id", SUM("spent") FROM "map_1" GROUP BY "_PRIVACY_UNIT_", "store_id"
),
"map_2" ("_PRIVACY_UNIT_", "store_id", "spent", "_RANDOM_") AS (
  SELECT "_PRIVACY_UNIT_", "store_id", "spent", RANDOM() FROM "reduce_1"
),
"join_2" ("_PRIVACY_UNIT_", "store_id", "spent", "_RANK_") AS (
  SELECT "_LEFT_"."_PRIVACY_UNIT_", "_LEFT_"."store_id", "_LEFT_"."spent", COUNT(*)
  FROM "map_2" AS "_LEFT_" JOIN "map_2" AS "_RIGHT_"
  ON (("_LEFT_"."_PRIVACY_UNIT_") = ("_RIGHT_"."_PRIVACY_UNIT_")) AND (("_RIGHT_"."_RANDOM_") <= ("_LEFT_"."_RANDOM_"))
  GROUP BY "_LEFT_"."_PRIVACY_UNIT_", "_LEFT_"."store_id", "_LEFT_"."spent"
),
"map_3" ("_PRIVACY_UNIT_", "store_id", "spent") AS (
  SELECT "_PRIVACY_UNIT_", "store_id", "spent" FROM "join_2" WHERE ("_RANK_") <= (3)
),
"reduce_2" ("_PRIVACY_UNIT_", "_NORM_") AS (
  SELECT "_PRIVACY_UNIT_", SQRT(SUM(("spent") * ("spent"))) FROM "map_3" GROUP BY "_PRIVACY_UNIT_"
),
"map_4" ("_PRIVACY_UNIT_", "store_id", "_CLIPPED_spent") AS (
  SELECT "_LEFT_"."_PRIVACY_UNIT_", "_LEFT_"."store_id", ("_LEFT_"."spent") / (GREATEST(1, ("_RIGHT_"."_NORM_") / (500)))
  FROM "map_3" AS "_LEFT_" JOIN "reduce_2" AS "_RIGHT_" ON ("_LEFT_"."_PRIVACY_UNIT_") = ("_RIGHT_"."_PRIVACY_UNIT_")
),
"reduce_3" ("store_id", "_COUNT_DISTINCT_PID_", "_SUM_spent") AS (
  SELECT "store_id", COUNT(*), SUM("_CLIPPED_spent") FROM "map_4" GROUP BY "store_id"
),
"map_5" ("store_id", "_COUNT_DISTINCT_PID_", "_SUM_spent") AS (
  SELECT "store_id",
    ("_COUNT_DISTINCT_PID_") + ((7.989038763562107) * ((SQRT((-2) * (LN(RANDOM())))) * (COS((6.283185307179586) * (RANDOM()))))),
    ("_SUM_spent") + ((2306.2368403544688) * ((SQRT((-2) * (LN(RANDOM())))) * (COS((6.283185307179586) * (RANDOM())))))
  FROM "reduce_3"
),
"map_6" ("store_id", "spent") AS (
  SELECT "store_id", LEAST(50000, GREATEST(0, "_SUM_spent")) FROM "map_5" WHERE ("_COUNT_DISTINCT_PID_") > (35.07236003708251)
)
SELECT * FROM "map_6"
