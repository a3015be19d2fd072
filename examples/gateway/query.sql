SELECT dp_count(*), dp_sum(cost) FROM visits
