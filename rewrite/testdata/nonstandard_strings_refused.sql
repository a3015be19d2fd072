-- set standard_conforming_strings = off
SELECT count(*) FROM users WHERE name = 'a\'
