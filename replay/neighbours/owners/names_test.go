package owners_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

func TestAct(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"locked_by", "locked_by_id", "resolved_by", "updated_by_user_id", "last_modified_by", "createdBy", "creator_id", "creator", "user_created", "user_updated", "approved_by",
		"reviewed_by_id", "deleted_by", "uploaded_by", "uploader_id", "last_editor_id", "archived_by", "checked_out_by", "editor", "created_user_id", "prescribed_by", "create_uid", "write_uid",
	} {
		if !owners.Act(name, "things") {
			t.Errorf("%s is no act", name)
		}
	}
	for _, name := range []string{
		"user_id", "owner_id", "author_id", "author_user_id", "customer", "sender_id", "assignee_id", "placed_by", "owned_by", "written_by_id", "booked_by", "created_at", "approval_status_user_id", "by", "",
	} {
		if owners.Act(name, "things") {
			t.Errorf("%s is an act", name)
		}
	}
	if owners.Act("editor", "editor") || owners.Act("editor_id", "app_editors") || !owners.Act("updated_by_editor", "editor") {
		t.Error("the editor of a table of editors")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		column, table string
		want          owners.Fit
	}{
		{"user_id", "users", owners.Named},
		{"author_user_id", "users", owners.Named},
		{"user", "auth_user", owners.Named},
		{"auth_user_id", "auth_user", owners.Named},
		{"userId", "users", owners.Named},
		{"userid", "users", owners.Named},
		{"customer_id", "shop_customer", owners.Named},
		{"person_id", "people", owners.Named},
		{"owner_id", "users", owners.Person},
		{"locked_by", "users", owners.Person},
		{"customer_id", "users", owners.Person},
		{"page_id", "users", owners.Unfit},
		{"status", "users", owners.Unfit},
		{"quantity", "people", owners.Unfit},
	} {
		if got := owners.FitOf(tc.column, tc.table, "id"); got != tc.want {
			t.Errorf("%s for %s: %d, want %d", tc.column, tc.table, got, tc.want)
		}
	}
	for text, want := range map[string]bool{
		"User": true, "users": true, "auth.user": true, `App\Models\User`: true, "AuthUser": true, "Comment": false, "user_group": false, "": false, "auth_permission": false,
	} {
		if got := owners.NamesTable(text, "auth_user"); got != want {
			t.Errorf("%q names auth_user: %v", text, got)
		}
	}
}
