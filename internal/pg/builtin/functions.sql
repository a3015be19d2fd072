-- Writes functions.txt: every function that SQL can call in pg_catalog, by name, with what a replay may do with it.
--   psql -XAt -F ' ' -f functions.sql > functions.txt   (PostgreSQL 15.20)
-- Classes:
--   safe            no overload is volatile, takes the name of an object or depends on session or catalog; or it is a
--                   volatile one that was checked by hand (chance and clock: no state outlives the call)
--   volatile        has or may have side effects; refused unless the configuration allows it by name
--   never           reads names, OIDs, the catalog, files or the session: its result is another one on a neighbour schema
--   never-volatile  both
-- A function of pg_catalog that is not listed (I/O functions, handlers, those of later versions and of extensions) is refused
-- unless the configuration allows it by name, and is never hoisted.
WITH callable AS (
    SELECT p.proname, p.provolatile = 'v' AS volatile,
           p.proargtypes::oid[] || p.prorettype AS types
    FROM pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace
      AND NOT (p.proargtypes::oid[] || p.prorettype) && ARRAY[
          'internal'::regtype, 'cstring', 'trigger', 'event_trigger', 'language_handler', 'fdw_handler',
          'index_am_handler', 'tsm_handler', 'table_am_handler']::regtype[]::oid[]
), named AS (
    SELECT proname, bool_or(volatile) AS volatile,
           bool_or(types && ARRAY['regclass'::regtype, 'regproc', 'regprocedure', 'regoper', 'regoperator',
                                  'regtype', 'regrole', 'regnamespace', 'regcollation', 'refcursor']::regtype[]::oid[]) AS names
    FROM callable GROUP BY proname
), judged AS (
    SELECT proname, volatile AND proname NOT IN ('random', 'random_normal', 'clock_timestamp', 'timeofday', 'gen_random_uuid', 'uuidv4', 'uuidv7', 'array_sample', 'array_shuffle') -- checked by hand
               AND proname !~ '_size$|_to_xml|^(pg_ls_|pg_read_|pg_stat_file|pg_get_|pg_is_|pg_last_|pg_current_|pg_control_|pg_stat_get_|pg_xact_|pg_partition_|current_query|currval|lastval|lo_get|ts_)' -- only read
               AS volatile,
           (names
            OR proname ~ '^(pg_|has_|to_reg|reg(class|proc|oper|type|role|namespace|coll)|inet_(client|server)_|txid_|acl|makeacl|binary_upgrade|brin_|gin_|plpgsql_|fmgr_|postgresql_fdw|RI_|lo_|lo(read|write)|current_|currtid|querytree)'
            OR proname ~ '_to_xml|_privilege|_description$|_key_recheck$'
            OR proname IN ('currval', 'lastval', 'nextval', 'setval', 'set_config', 'session_user', 'getpgusername',
                           'row_security_active', 'ts_stat', 'ts_rewrite', 'amvalidate',
                           'satisfies_hash_partition', 'oidvectortypes', 'format_type',
                           -- what they give holds the OIDs of types and values, which are others in another schema or database
                           'array_send', 'anyarray_send', 'anycompatiblearray_send', 'record_send', 'range_send', 'multirange_send', 'hashenum', 'hashenumextended',
                           'hash_record', 'hash_record_extended', 'hash_array', 'hash_array_extended', 'hash_range',
                           'hash_range_extended', 'hash_multirange', 'hash_multirange_extended'))
           AND proname !~ '^pg_(column_size|collation_for|size_pretty|size_bytes|lsn.*|wal_lsn_diff|timezone_names|timezone_abbrevs|sleep.*|(try_)?advisory_.*)$' AS never
    FROM named
)
SELECT proname, CASE WHEN never AND volatile THEN 'never-volatile' WHEN never THEN 'never'
                     WHEN volatile THEN 'volatile' ELSE 'safe' END
FROM judged ORDER BY proname COLLATE "C";
