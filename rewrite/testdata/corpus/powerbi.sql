-- Power BI: folded steps of Power Query, DirectQuery
select "_"."country", "_"."a0" from (select "rows"."country" as "country", count(distinct("rows"."id")) as "a0" from (select "id", "country" from "public"."users" "$Table") "rows" group by "country") "_" where not "_"."a0" is null

select "$Table"."id" as "id", "$Table"."status" as "status", "$Table"."total" as "total" from "public"."orders" "$Table" order by "$Table"."id" limit 4096

select count(1) as "$Item" from (select "_"."id" from "public"."orders" "_" where "_"."status" = 'paid' and "_"."status" is not null) "rows"

select "_"."c" as "c", "_"."a0" as "a0" from (select "rows"."c" as "c", sum(cast("rows"."total" as decimal)) as "a0" from (select date_trunc('month', "_"."created_at") as "c", "_"."total" as "total" from "public"."orders" as "_") "rows" group by "c") "_" order by "_"."c" limit 1000001

select "rows"."name" as "name", max("rows"."email") as "a0", min("rows"."email") as "a1" from (select "_"."name", "_"."email" from "public"."users" "_") "rows" group by "name"

select "$Outer"."country", "$Inner"."total" from (select "id" as "id2", "country" from "public"."users") "$Outer" left outer join (select "user_id", sum("total") as "total" from "public"."orders" group by "user_id") "$Inner" on ("$Outer"."id2" = "$Inner"."user_id")

select "_"."id", "_"."name", case when "_"."country" = 'DE' and "_"."country" is not null then 'home' else 'abroad' end as "where" from "public"."users" "_"

select "_"."id" from "public"."users" "_" where "_"."email" in ('user1@example.org', 'USER2@EXAMPLE.ORG')

select "_"."mode", "_"."a0", "_"."a1" from (select "mode", avg("quantity") as "a0", sum("price") as "a1" from "public"."order_items" "$Table" where "shipped" >= date '2023-03-01' and "shipped" < date '2023-09-01' group by "mode") "_" where not "_"."a0" is null or not "_"."a1" is null

select "t0"."year", "t0"."a0" from (select cast(date_part('year', "_"."created_at") as int) as "year", cast(count(*) as double precision) as "a0" from "public"."orders" "_" group by 1) "t0"

select basetable0."a", basetable0."b" from (select semijoin1."c3" as "a", sum(basetable0."total") as "b" from (select "user_id", "total" from "public"."orders") basetable0 inner join (select 1 as "c3", 2 as "user_id" union all select 2 as "c3", 3 as "user_id") semijoin1 on semijoin1."user_id" = basetable0."user_id" group by semijoin1."c3") basetable0

select distinct "_"."city" from "public"."users" "_" where "_"."city" like 'City%' order by "_"."city" limit 501

select "_"."id", upper("_"."name") as "u", lower("_"."city") as "l", length("_"."name") as "n", substring("_"."name", 1, 3) as "s", position('a' in "_"."name") as "p" from "public"."users" "_"

select cast("_"."created_at" as date) as "d", extract(hour from "_"."created_at") as "h", count(*) as "n" from "public"."orders" "_" group by 1, 2

select "_"."user_id" as "user_id", "_"."rank" as "rank" from (select "user_id", rank() over (order by sum("total") desc) as "rank" from "public"."orders" group by "user_id") "_" where "_"."rank" <= 3

select "rows"."tier"::varchar as "tier", sum("rows"."mrr") as "mrr" from (select "u"."tier", "s"."mrr" from "public"."users" "u" inner join "public"."subscriptions" "s" on "s"."user_id" = "u"."id" where "s"."ended" is null) "rows" group by 1

select "_"."id", coalesce("_"."discount", 0) as "discount", round(cast("_"."total" as numeric), 0) as "r", abs("_"."total" - 100) as "a", power("_"."total", 2) as "p" from "public"."orders" "_"
