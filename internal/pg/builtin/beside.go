package builtin

import (
	"regexp"
	"slices"
	"strings"
)

// besides says what built-in functions read besides tables, by patterns of their names; the first match applies. "" is
// nothing that holds or counts rows: what a function does with its arguments, with the session, or with definitions.
var besides = []struct {
	names *regexp.Regexp
	what  string
}{
	{regexp.MustCompile(`^(lo_import|lo_export|pg_read_.*|pg_ls_.*|pg_stat_file|pg_current_logfile|pg_hba_file_rules|pg_ident_file_mappings|pg_show_all_file_settings)$`), "files of the server"},
	{regexp.MustCompile(`^(lo_.*|loread|lowrite)$`), "large objects"},
	{regexp.MustCompile(`^(nextval|currval|lastval|setval|pg_sequence_last_value|pg_get_sequence_data)$`), "sequences"},
	{regexp.MustCompile(`^(query|cursor|table|schema|database)_to_xml|^ts_(stat|rewrite)$`), "what a text among its arguments names"},
	{regexp.MustCompile(`advisory`), "advisory locks"},
	{regexp.MustCompile(`^(pg_notify|pg_listening_channels|pg_notification_queue_usage)$`), "notifications"},
	{regexp.MustCompile(`^(pg_show_all_settings|pg_db_role_setting)$`), "settings"},
	{regexp.MustCompile(`_description$`), "comments"},
	{regexp.MustCompile(`^(pg_stat_.*|pg_mcv_list_items|pg_(relation|table|indexes|total_relation|database|tablespace)_size)$`), "statistics of the server"},
	{regexp.MustCompile(`^(setseed|set_config|current_.*|session_user|system_user|getpgusername|pg_sleep.*|pg_typeof|format_type|querytree|row_security_active|satisfies_hash_partition)$`), ""},
	{regexp.MustCompile(`^(has_.*|acl.*|makeaclitem|to_reg.*|reg.*|inet_.*|hash.*|array_send|any.*_send|record_send|range_send|multirange_send|oidvectortypes|.*_(in|out|recv|send)|.*(in|out|recv|send))$`), ""},
	{regexp.MustCompile(`^(txid_.*|pg_snapshot_.*|pg_(current|visible)_(snapshot|xact.*|in_snapshot)|pg_current_xact_id.*|pg_visible_in_snapshot|pg_xact_status)$`), ""},
	{regexp.MustCompile(`^pg_(.*_is_visible|has_role|backend_pid|client_encoding|char_to_encoding|encoding_.*|column_compression|my_temp_schema|is_other_temp_schema|postmaster_start_time|is_in_recovery|trigger_depth|jit_available|options_to_table|get_keywords|get_userbyid|settings_get_flags)$`), ""},
	{regexp.MustCompile(`^pg_(get_(.*def|.*def_.*|expr|function_.*|serial_sequence|partkeydef|replica_identity_index|catalog_foreign_keys|object_address)|identify_object.*|describe_object|partition_.*|.*_has_property|sequence_parameters|collation_actual_version|extension_update_paths|available_extension.*)$`), ""},
}

// Beside says what a built-in function reads besides tables and its arguments, such as files or sequences: something
// that is the same for every copy of a table. "" = nothing. What current_setting reads depends on its argument.
func Beside(name string) string {
	if Of(name) == Safe {
		return ""
	}
	for _, b := range besides {
		if b.names.MatchString(name) {
			return b.what
		}
	}
	return "the state of the server"
}

// definitions are the relations of pg_catalog that hold definitions alone, which only DDL changes: as the body of a
// function, they are a part of the engine. pg_class is not one of them, as it counts rows.
var definitions = strings.Fields(`pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_cast pg_collation pg_constraint pg_conversion pg_depend
	pg_enum pg_extension pg_index pg_inherits pg_language pg_namespace pg_opclass pg_operator pg_opfamily pg_partitioned_table pg_policy pg_proc
	pg_range pg_rewrite pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_type pg_timezone_names pg_timezone_abbrevs`)

// Definitions returns the relations of pg_catalog that hold nothing but definitions.
func Definitions() []string { return definitions }

// HoldsDefinitions reports whether a relation of pg_catalog holds nothing but definitions.
func HoldsDefinitions(relation string) bool { return slices.Contains(definitions, relation) }
