SELECT x.*, JSON_ARRAYAGG(t.spent) FROM transactions t, XMLTABLE('/a' PASSING (SELECT xmlelement(name a, max(id)) FROM users) COLUMNS v int PATH '.') x GROUP BY x.v
