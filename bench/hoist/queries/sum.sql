SELECT sum(least(spent, 400)) + 400 * sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random()) AS total FROM transactions
