-- TPC-H forms over users, orders and their items
select i.returned, i.mode, sum(i.quantity) as sum_qty, sum(i.price) as sum_base_price, sum(i.price * (1 - i.discount)) as sum_disc_price, avg(i.quantity) as avg_qty, count(*) as count_order from order_items i where i.shipped <= date '2023-12-01' - interval '90' day group by i.returned, i.mode order by i.returned, i.mode

select i.order_id, sum(i.price * (1 - i.discount)) as revenue, o.created_at, o.priority from users c, orders o, order_items i where c.country = 'DE' and c.id = o.user_id and i.order_id = o.id and o.created_at < date '2023-06-15' and i.shipped > date '2023-03-15' group by i.order_id, o.created_at, o.priority order by revenue desc, o.created_at limit 10

select o.priority, count(*) as order_count from orders o where o.created_at >= date '2023-02-01' and o.created_at < date '2023-02-01' + interval '3' month and exists (select * from order_items where order_items.order_id = o.id and shipped < received) group by o.priority order by o.priority

select s.region, sum(i.price * (1 - i.discount)) as revenue from users c, orders o, order_items i, stores s where c.id = o.user_id and i.order_id = o.id and o.store_id = s.id and o.created_at >= date '2023-01-01' and o.created_at < date '2023-01-01' + interval '1' year group by s.region order by revenue desc

select sum(price * discount) as revenue from order_items where shipped >= date '2023-02-01' and shipped < date '2023-02-01' + interval '1' year and discount between 0.2 - 0.11 and 0.2 + 0.11 and quantity < 7

select shipping.supp, shipping.l_year, sum(volume) as revenue from (select s.country as supp, extract(year from i.shipped) as l_year, i.price * (1 - i.discount) as volume from stores s, order_items i, orders o, users c where o.store_id = s.id and o.id = i.order_id and c.id = o.user_id and ((s.country = 'DE' and c.country = 'FR') or (s.country = 'FR' and c.country = 'DE'))) as shipping group by supp, l_year order by supp, l_year

select o_year, sum(case when nation = 'US' then volume else 0 end) / sum(volume) as mkt_share from (select extract(year from o.created_at) as o_year, i.price * (1 - i.discount) as volume, s.country as nation from order_items i, orders o, stores s where o.id = i.order_id and s.id = o.store_id) as all_nations group by o_year order by o_year

select c.id, c.name, sum(i.price * (1 - i.discount)) as revenue, c.country, c.city from users c, orders o, order_items i where c.id = o.user_id and i.order_id = o.id and i.returned group by c.id, c.name, c.country, c.city order by revenue desc, c.id limit 20

select i.product_id, sum(i.price * i.quantity) as value from order_items i group by i.product_id having sum(i.price * i.quantity) > (select sum(price * quantity) * 0.05 from order_items) order by value desc, 1

select i.mode, sum(case when o.priority = '1-URGENT' or o.priority = '2-HIGH' then 1 else 0 end) as high_line_count, sum(case when o.priority <> '1-URGENT' and o.priority <> '2-HIGH' then 1 else 0 end) as low_line_count from orders o, order_items i where o.id = i.order_id and i.mode in ('MAIL', 'SHIP') and i.shipped < i.received group by i.mode order by i.mode

select c_count, count(*) as custdist from (select c.id, count(o.id) from users c left outer join orders o on c.id = o.user_id and o.comment not like '%special%requests%' group by c.id) as c_orders (c_id, c_count) group by c_count order by custdist desc, c_count desc

select 100.00 * sum(case when p.category like 'B%' then i.price * (1 - i.discount) else 0 end) / sum(i.price * (1 - i.discount)) as promo_revenue from order_items i, products p where i.product_id = p.id and i.shipped >= date '2023-03-01' and i.shipped < date '2023-03-01' + interval '1' month

with revenue (product_no, total_revenue) as (select product_id, sum(price * (1 - discount)) from order_items where shipped >= date '2023-02-01' group by product_id) select p.id, p.name, total_revenue from products p, revenue where p.id = product_no and total_revenue = (select max(total_revenue) from revenue) order by p.id

select p.brand, p.category, count(distinct o.user_id) as buyers from order_items i, products p, orders o where p.id = i.product_id and o.id = i.order_id and p.brand <> 'Brand#4' and p.category not like 'G%' and i.quantity in (1, 4, 7, 9) and o.user_id not in (select id from users where city like '%4%') group by p.brand, p.category order by buyers desc, p.brand, p.category

select sum(i.price) / 7.0 as avg_yearly from order_items i, products p where p.id = i.product_id and p.brand = 'Brand#2' and i.quantity < (select 0.9 * avg(x.quantity) from order_items x where x.product_id = p.id)

select c.name, c.id, o.id as order_no, o.created_at, o.total, sum(i.quantity) from users c, orders o, order_items i where o.id in (select order_id from order_items group by order_id having sum(quantity) > 15) and c.id = o.user_id and o.id = i.order_id group by c.name, c.id, o.id, o.created_at, o.total order by o.total desc, o.created_at limit 100

select sum(i.price * (1 - i.discount)) as revenue from order_items i, products p where (p.id = i.product_id and p.brand = 'Brand#1' and p.category in ('Books', 'Games') and i.quantity >= 1 and i.quantity <= 8 and i.mode in ('AIR', 'MAIL')) or (p.id = i.product_id and p.brand = 'Brand#3' and i.quantity between 2 and 9)

select cntrycode, count(*) as numcust, sum(spent) as total from (select substring(u.country from 1 for 2) as cntrycode, (select sum(total) from orders where user_id = u.id) as spent from users u where substring(u.country from 1 for 2) in ('DE', 'FR', 'US') and not exists (select * from subscriptions s where s.user_id = u.id and s.ended is not null)) as custsale group by cntrycode order by cntrycode
