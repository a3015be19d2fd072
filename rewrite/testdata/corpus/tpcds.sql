-- TPC-DS forms over the same schema
with customer_total_return as (select o.user_id as ctr_customer_sk, o.store_id as ctr_store_sk, sum(i.price) as ctr_total_return from order_items i, orders o where i.returned and o.id = i.order_id group by o.user_id, o.store_id) select c.id from customer_total_return ctr1, stores s, users c where ctr1.ctr_total_return > (select avg(ctr_total_return) * 1.2 from customer_total_return ctr2 where ctr1.ctr_store_sk = ctr2.ctr_store_sk) and s.id = ctr1.ctr_store_sk and ctr1.ctr_customer_sk = c.id order by c.id limit 100

select dt.year, p.brand, sum(i.price) as sum_agg from calendar dt, order_items i, products p where dt.day = i.shipped and i.product_id = p.id and dt.month = 3 group by dt.year, p.brand order by dt.year, sum_agg desc, p.brand limit 100

select case when (select count(*) from order_items where quantity between 1 and 3) > 20 then (select avg(price) from order_items where quantity between 1 and 3) else (select avg(discount) from order_items where quantity between 1 and 3) end as bucket1, case when (select count(*) from order_items where quantity between 4 and 6) > 20 then (select avg(price) from order_items where quantity between 4 and 6) else 0 end as bucket2

with ssr as (select s.id as store, sum(o.total) as sales, sum(coalesce(o.discount, 0)) as profit from orders o, stores s where o.store_id = s.id group by s.id), wsr as (select o.store_id as store, sum(i.price) as returns from order_items i join orders o on o.id = i.order_id where i.returned group by o.store_id) select channel, id, sum(sales) as sales, sum(returns) as returns from (select 'store' as channel, ssr.store as id, sales, coalesce(returns, 0) as returns from ssr left join wsr on ssr.store = wsr.store) x group by rollup (channel, id) order by channel nulls last, id nulls last

select a.country as state, count(*) as cnt from users a, orders o, order_items i, products p where a.id = o.user_id and o.id = i.order_id and i.product_id = p.id and p.price > 1.2 * (select avg(j.price) from products j where j.category = p.category) group by a.country having count(*) >= 1 order by cnt, a.country nulls last limit 100

select p.category, p.brand, sum(i.price) as itemrevenue, sum(i.price) * 100 / sum(sum(i.price)) over (partition by p.category) as revenueratio from order_items i, products p where i.product_id = p.id and p.category in ('Books', 'Tools') group by p.category, p.brand order by p.category, p.brand, revenueratio

select sum(o.total) as total, o.status, grouping(o.status) + grouping(o.currency) as lochierarchy, rank() over (partition by grouping(o.status) + grouping(o.currency), case when grouping(o.currency) = 0 then o.status end order by sum(o.total) desc) as rank_within_parent from orders o group by rollup (o.status, o.currency) order by lochierarchy desc, o.status nulls last, rank_within_parent

with v1 as (select p.category, s.city, d.year, d.month, sum(i.price) as sum_sales, avg(sum(i.price)) over (partition by p.category, s.city, d.year) as avg_monthly_sales, rank() over (partition by p.category, s.city order by d.year, d.month) as rn from products p, order_items i, calendar d, orders o, stores s where i.product_id = p.id and i.shipped = d.day and o.id = i.order_id and o.store_id = s.id group by p.category, s.city, d.year, d.month), v2 as (select v1.category, v1.city, v1.year, v1.month, v1.sum_sales, v1.avg_monthly_sales, v1_lag.sum_sales as psum, v1_lead.sum_sales as nsum from v1, v1 v1_lag, v1 v1_lead where v1.category = v1_lag.category and v1.category = v1_lead.category and v1.city = v1_lag.city and v1.city = v1_lead.city and v1.rn = v1_lag.rn + 1 and v1.rn = v1_lead.rn - 1) select * from v2 where avg_monthly_sales > 0 order by sum_sales - avg_monthly_sales, category, city, month limit 100

select count(*) from ((select distinct u.name, c.day from orders o, calendar c, users u where o.created_at::date = c.day and o.user_id = u.id) intersect (select distinct u.name, e.at::date from events e, users u where e.user_id = u.id)) hot_cust

select count(*) from ((select distinct user_id from orders) except (select user_id from subscriptions where ended is not null)) cool_cust

with cross_items as (select p.id as ss_item_sk from products p, (select brand, category from products where price < 20 intersect select brand, category from products where price > 10) x where p.brand = x.brand and p.category = x.category) select 'store' as channel, i.product_id, sum(i.quantity * i.price) as sales, count(*) as number_sales from order_items i where i.product_id in (select ss_item_sk from cross_items) group by i.product_id having sum(i.quantity * i.price) > (select avg(quantity * price) from order_items) order by i.product_id

select substr(s.city, 1, 20) as s, sum(case when (i.received - i.shipped <= 3) then 1 else 0 end) as "30 days", sum(case when (i.received - i.shipped > 3) and (i.received - i.shipped <= 5) then 1 else 0 end) as "31-60 days", sum(case when (i.received - i.shipped > 5) then 1 else 0 end) as ">60 days" from order_items i, orders o, stores s where o.id = i.order_id and o.store_id = s.id group by substr(s.city, 1, 20) order by 1 limit 100

select * from (select p.category, sum(i.price) as sum_sales, avg(sum(i.price)) over (partition by p.category) as avg_sales from order_items i, products p where i.product_id = p.id group by p.category, extract(quarter from i.shipped)) tmp1 where case when avg_sales > 0 then abs(sum_sales - avg_sales) / avg_sales else null end > 0.01 order by avg_sales, sum_sales, category limit 100

select a.name, b.name, asceding.rnk from (select user_id, rank() over (order by avg(total)) as rnk from orders group by user_id) asceding, (select user_id, rank() over (order by avg(total) desc) as rnk from orders group by user_id) descending, users a, users b where asceding.rnk = descending.rnk and a.id = asceding.user_id and b.id = descending.user_id order by asceding.rnk

with ws_wh as (select ws1.order_id, ws1.product_id as wh1, ws2.product_id as wh2 from order_items ws1, order_items ws2 where ws1.order_id = ws2.order_id and ws1.product_id <> ws2.product_id) select count(distinct i.order_id) as "order count", sum(i.price) as "total" from order_items i where i.order_id in (select order_id from ws_wh) and not exists (select * from order_items r where r.order_id = i.order_id and r.returned)

select sum(case when d.is_weekend then o.total end) as weekend, sum(case when not d.is_weekend then o.total end) as workday, sum(case when d.is_weekend then o.total end) / nullif(sum(case when not d.is_weekend then o.total end), 0) as ratio from orders o join calendar d on d.day = o.created_at::date

select c.city, c.id, amt, profit from (select o.user_id, u.city as bought_city, sum(coalesce(o.discount, 0)) as amt, sum(o.total) as profit from orders o, users u where o.user_id = u.id group by o.user_id, u.city) dn, users c where dn.user_id = c.id order by c.city, c.id limit 100

select p.id, p.name, p.price from products p where p.price between 6 and 30 and exists (select 1 from order_items i where i.product_id = p.id and i.quantity between 2 and 8) group by p.id, p.name, p.price order by p.id limit 100

with year_total as (select c.id as customer_id, c.name, extract(quarter from o.created_at) as q, sum(o.total) as year_total from users c join orders o on c.id = o.user_id group by 1, 2, 3) select t1.customer_id, t1.name from year_total t1 join year_total t2 on t1.customer_id = t2.customer_id and t1.q = 1 and t2.q = 2 where t2.year_total > t1.year_total order by 1

select d1.year, count(*), stddev_samp(i.quantity), stddev_samp(i.quantity) / avg(i.quantity) as cov from order_items i join calendar d1 on d1.day = i.shipped group by cube (d1.year, d1.quarter) order by 1 nulls last, 2, 3
