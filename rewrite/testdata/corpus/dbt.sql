-- dbt: models as compiled for a query, chains of CTEs, tests
with source as (select * from "shop"."public"."orders"), renamed as (select id as order_id, user_id as customer_id, created_at::date as order_date, status, total as amount from source) select * from renamed order by order_id

with customers as (select id as customer_id, name from public.users), orders as (select id as order_id, user_id as customer_id, created_at as order_date, status from public.orders), customer_orders as (select customer_id, min(order_date) as first_order_date, max(order_date) as most_recent_order_date, count(order_id) as number_of_orders from orders group by 1), final as (select customers.customer_id, customers.name, customer_orders.first_order_date, customer_orders.most_recent_order_date, coalesce(customer_orders.number_of_orders, 0) as number_of_orders from customers left join customer_orders using (customer_id)) select * from final

select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from (select id from "shop"."public"."users" where id is null) dbt_internal_test

select count(*) as failures from (select id as unique_field, count(*) as n_records from public.orders where id is not null group by id having count(*) > 1) dbt_internal_test

with all_values as (select status as value_field, count(*) as n_records from public.orders group by status) select * from all_values where value_field not in ('paid', 'open', 'shipped')

with child as (select user_id as from_field from public.orders where user_id is not null), parent as (select id as to_field from public.users) select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null

with monthly as (select date_trunc('month', started)::date as month, sum(mrr) as new_mrr from subscriptions group by 1), churn as (select date_trunc('month', ended)::date as month, sum(mrr) as lost_mrr from subscriptions where ended is not null group by 1) select coalesce(m.month, c.month) as month, coalesce(new_mrr, 0) - coalesce(lost_mrr, 0) as net, sum(coalesce(new_mrr, 0) - coalesce(lost_mrr, 0)) over (order by coalesce(m.month, c.month)) as mrr from monthly m full outer join churn c on m.month = c.month order by 1

with recursive referrals as (select id, parent_id, 1 as depth, array[id] as path from users where parent_id is null union all select u.id, u.parent_id, r.depth + 1, r.path || u.id from users u join referrals r on u.parent_id = r.id) select depth, count(*), max(array_length(path, 1)) from referrals group by depth order by depth

with sessions as (select session_id, user_id, min(at) as started_at, max(at) as ended_at, count(*) as pageviews, (array_agg(url order by at))[1] as landing_page from events group by 1, 2), numbered as (select *, row_number() over (partition by user_id order by started_at) as session_number from sessions) select session_number, count(*) as sessions, avg(pageviews) as avg_pageviews from numbered group by 1 order by 1

with days as (select day from calendar where day between date '2023-02-01' and date '2023-04-30'), daily as (select d.day, count(o.id) as orders, coalesce(sum(o.total), 0) as revenue from days d left join orders o on o.created_at::date = d.day group by 1) select day, orders, revenue, avg(revenue) over (order by day rows between 6 preceding and current row) as ma7 from daily order by day

with cohorts as (select u.id, date_trunc('month', u.created_at) as cohort from users u), activity as (select c.cohort, (extract(year from e.at) - extract(year from c.cohort)) * 12 + extract(month from e.at) - extract(month from c.cohort) as n, count(distinct e.user_id) as users from cohorts c join events e on e.user_id = c.id group by 1, 2) select cohort::date, n::int, users, round(users::numeric / first_value(users) over (partition by cohort order by n), 3) as retention from activity order by 1, 2

with funnel as (select user_id, bool_or(name = 'view') as viewed, bool_or(name = 'cart') as carted, bool_or(name = 'purchase') as bought from events group by user_id) select count(*) filter (where viewed) as views, count(*) filter (where viewed and carted) as carts, count(*) filter (where viewed and carted and bought) as purchases from funnel

select md5(cast(coalesce(cast(id as text), '_dbt_utils_surrogate_key_null_') || '-' || coalesce(cast(status as text), '_dbt_utils_surrogate_key_null_') as text)) as order_key, safe_divide(total, discount) as ratio from orders order by 1

select o.user_id, sum(case when o.currency = 'EUR' then o.total else 0 end) as eur_amount, sum(case when o.currency = 'USD' then o.total else 0 end) as usd_amount from orders o group by 1 order by 1

with unioned as (select 'order' as kind, user_id, created_at::timestamptz as at from orders union all select 'event', user_id, at from events union all select 'signup', id, created_at from users) select kind, count(*), count(distinct user_id) from unioned group by kind order by kind

with ranked as (select *, row_number() over (partition by user_id order by created_at desc, id desc) as rn from orders) select user_id, status, total from ranked where rn = 1 order by user_id

with snapshot as (select id, status, lag(status) over (partition by user_id order by created_at) as previous_status from orders) select previous_status, status, count(*) from snapshot group by grouping sets ((previous_status, status), ()) order by 1 nulls last, 2 nulls last

select user_id, (select count(*) from order_items i join orders x on x.id = i.order_id where x.user_id = o.user_id) as items, exists (select 1 from subscriptions s where s.user_id = o.user_id and s.ended is null) as subscribed from (select distinct user_id from orders) o order by 1

with e as (select user_id, at, case when at - lag(at) over w > interval '12 hours' then 1 else 0 end as new_session from events window w as (partition by user_id order by at)), s as (select user_id, sum(new_session) over (partition by user_id order by at) as session_no from e) select user_id, max(session_no) + 1 as sessions from s group by 1 order by 1

select u.country, lateral_orders.total from users u cross join lateral (select o.total from orders o where o.user_id = u.id order by o.total desc, o.id limit 2) lateral_orders order by 1 nulls last, 2

with payload as (select id, jsonb_path_query_first(props, '$.address.zip')::text as zip, props -> 'address' ->> 'zip' as zip2, jsonb_build_object('id', id, 'name', name) as doc from users) select zip, zip2, doc from payload order by id

select to_jsonb(u) - 'email' - 'created_at' as document from users u order by u.id
