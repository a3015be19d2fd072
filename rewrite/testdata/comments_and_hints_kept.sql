/*+ SeqScan(t) */ SELECT /* a */ count(*) -- b
FROM transactions t /*traceparent='00-1'*/
