-- The noise is as large as the claim needs: one user changes the number by 1, and the scale is 1 / 0.5.
SELECT noisy(count(*), 1 / 0.5) FROM users /*dp_epsilon='0.5'*/;
-- Half of it: the privacy loss is 1, twice the claim.
SELECT noisy(count(*), 0.5 / 0.5) FROM users WHERE income >= 20000 /*dp_epsilon='0.5'*/;
-- Noise for one visit, but a user makes many.
SELECT noisy(count(*), 1 / 1.0) FROM visits WHERE store < 10 /*dp_epsilon='1.0'*/;
