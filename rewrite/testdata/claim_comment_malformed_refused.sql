SELECT count(*) FROM users /* dp_epsilon = 0.5 */
