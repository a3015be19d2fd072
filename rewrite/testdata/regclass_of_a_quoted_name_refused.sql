SELECT 'app."Order Lines"'::regclass, count(*) FROM app."Order Lines"
