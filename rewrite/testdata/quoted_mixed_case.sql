SELECT count(*) FROM app."Order Lines" WHERE "Order Lines"."Price" > 1
