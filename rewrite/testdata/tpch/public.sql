CREATE TABLE public.nation (n_nationkey int, n_name text, n_regionkey int);
INSERT INTO public.nation VALUES (0, 'FRANCE', 0), (1, 'GERMANY', 0), (2, 'BRAZIL', 1), (3, 'CANADA', 1), (4, 'SAUDI ARABIA', 2);
CREATE TABLE public.region (r_regionkey int, r_name text);
INSERT INTO public.region VALUES (0, 'EUROPE'), (1, 'AMERICA'), (2, 'MIDDLE EAST');
