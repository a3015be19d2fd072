SELECT 'naïve — 🦊' AS "größe" FROM transactions -- ünïcode
 JOIN users ON true
