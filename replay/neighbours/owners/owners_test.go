package owners_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// TestMain stops the server of the tests.
func TestMain(m *testing.M) { pgtest.Main(m) }

const uid = "md5('u' || (%s))::uuid"

// find runs the search in a database made of statements.
func find(t *testing.T, o owners.Options, statements ...string) *owners.Found {
	t.Helper()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, statements...)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the test is over
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	found, err := owners.Find(t.Context(), tx, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// lines returns the lines of a kind, without "- {table: public." and "to: public.users".
func lines(found *owners.Found, sure bool) (out []string) {
	for _, c := range found.Candidates {
		if c.Sure == sure {
			out = append(out, strings.NewReplacer("- {table: public.", "", ", to: public.users", "", "columns: ", "", "}", "").Replace(c.Line()))
		}
	}
	return out
}

func TestFind(t *testing.T) {
	t.Parallel()
	found := find(t, owners.Options{Unit: ident.Table{Schema: "public", Name: "users"}, Key: []string{"id"}},
		`CREATE TABLE users (id int PRIMARY KEY, email text, name text, phone varchar(20)); INSERT INTO users SELECT i, 'u' || i || '@example.org', 'name ' || i % 10, '+49' || i FROM generate_series(1, 100) i`,
		`CREATE TABLE kinds (id int PRIMARY KEY, model text); INSERT INTO kinds VALUES (1, 'page'), (2, 'user')`,
		`CREATE TABLE comments (id int PRIMARY KEY, user_id int REFERENCES users, quantity int, body text, locked_by int REFERENCES users);
			INSERT INTO comments SELECT i, 1 + i % 100, i % 5, repeat('word ', 100), NULL FROM generate_series(1, 200) i`,
		`CREATE TABLE replies (id int PRIMARY KEY, comment_id int REFERENCES comments, author_user_id bigint, updated_by text, page_id int);
			INSERT INTO replies SELECT i, 1 + i % 200, 1 + i % 100, (1 + i % 3)::text, 1 + i % 9 FROM generate_series(1, 300) i`,
		`CREATE TABLE notes (id int PRIMARY KEY, record_type text, record_id int, content_type_id int REFERENCES kinds, object_id varchar);
			INSERT INTO notes SELECT i, CASE i % 2 WHEN 0 THEN 'User' ELSE 'Comment' END, 1 + i % 50, 1 + i % 2, 1 + i % 60 FROM generate_series(1, 100) i`,
		`CREATE TABLE orders (id int PRIMARY KEY, customer_id int, guest_email text, total int); INSERT INTO orders SELECT i, NULL, 'u' || i * 3 || '@example.org', i FROM generate_series(1, 50) i`,
		`CREATE TABLE claims (id int PRIMARY KEY, order_id int, key bytea); INSERT INTO claims SELECT i, 1 + i % 50 FROM generate_series(1, 70) i`,
		`CREATE TABLE teams (id int PRIMARY KEY, members bigint[], tags text[]); INSERT INTO teams SELECT i, ARRAY[i, i + 1], ARRAY['a', 'b'] FROM generate_series(1, 20) i`,
		`CREATE TABLE events (id int PRIMARY KEY, data jsonb, raw json); INSERT INTO events SELECT i, jsonb_build_object('actor', jsonb_build_object('user_id', i), 'count', i, 'u' || i || '@example.org', i),
			json_build_object('likes', json_build_array(json_build_object('by', 'u' || i || '@example.org'))) FROM generate_series(1, 30) i`,
		`CREATE TABLE audit (id int PRIMARY KEY, order_id int REFERENCES orders, user_id int); INSERT INTO audit SELECT i, 1 + i % 50, 1 + i % 100 FROM generate_series(1, 70) i`,
		`CREATE TABLE email (id int PRIMARY KEY, content json, content_type_id int REFERENCES kinds, base_content_type_id int REFERENCES kinds, object_id varchar, to_content_type_id int REFERENCES kinds, to_object_id varchar);
			INSERT INTO email SELECT i, '{}', 1 + i % 2, 1 + i % 2, i, 1 + i % 2, i FROM generate_series(1, 50) i`,
		`CREATE TABLE credits (id int PRIMARY KEY, reference text, reference_id text, source text, source_user_id int); INSERT INTO credits SELECT i, CASE i % 2 WHEN 0 THEN 'user' ELSE 'cart' END, i, 'web', i FROM generate_series(1, 50) i`,
		`CREATE TABLE jobs (id int PRIMARY KEY, max_user_id int, watchers int[], list int[]); INSERT INTO jobs SELECT i, i + 20, ARRAY[i], ARRAY[i, i + 1] FROM generate_series(1, 20) i`,
		`CREATE TABLE fresh (id int PRIMARY KEY, user_id int)`, `ANALYZE`)
	want := []string{
		`audit, [user_id]`, `claims, [order_id], to: public.orders, on: [id]`,
		`comments, [locked_by], act: true`, `comments, [user_id]`, `credits, [reference_id], where: "reference = 'user'"`, `credits, [source_user_id]`,
		`email, [object_id], where: "content_type_id = 2"`, `email, [object_id], where: "base_content_type_id = 2"`, `email, [to_object_id], where: "to_content_type_id = 2"`, `events, ["data->actor->user_id"]`, `events, ["raw->likes[]->by"], on: [email]`, `fresh, [user_id]`, `jobs, ["watchers[]"]`,
		`notes, [object_id], where: "content_type_id = 2"`, `notes, [record_id], where: "record_type = 'User'"`, `orders, [guest_email], on: [email]`,
		`replies, [author_user_id]`, `replies, [updated_by], act: true`, `teams, ["members[]"]`,
	}
	if got := lines(found, true); !slices.Equal(got, want) {
		t.Errorf("sure:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := lines(found, false); !slices.Equal(got, []string{`jobs, ["list[]"]`, `jobs, [max_user_id]`}) {
		t.Errorf("unsure: %v", got)
	}
	if !slices.Equal(found.Addresses, []string{"email", "phone"}) {
		t.Errorf("addresses: %v", found.Addresses)
	}
	var unread []string
	for _, u := range found.Unread {
		unread = append(unread, u.Table.Name+"."+u.Column+": "+u.Why)
	}
	if want := []string{"claims.key: bytea, perhaps encrypted", "comments.body: free text"}; !slices.Equal(unread, want) {
		t.Errorf("not read: %v", unread)
	}
}

// TestFindUUIDs: values that cannot be equal by chance count without a name.
func TestFindUUIDs(t *testing.T) {
	t.Parallel()
	u := func(of string) string { return fmt.Sprintf(uid, of) }
	found := find(t, owners.Options{Unit: ident.Table{Schema: "public", Name: "auth_user"}, Key: []string{"id"}, Rows: 100},
		`CREATE TABLE auth_user (id uuid PRIMARY KEY); INSERT INTO auth_user SELECT `+u("i")+` FROM generate_series(1, 300) i`,
		`CREATE TABLE staff (id uuid PRIMARY KEY)`,
		`CREATE TABLE logs (id int PRIMARY KEY, whom uuid, what text, item uuid, collection text, "user" uuid); INSERT INTO logs SELECT i, `+u("1 + i % 100")+`, `+u("i % 2 * i")+`,
			`+u("1 + i % 2 * 1000")+`, CASE WHEN i % 6 = 2 THEN 'profile' WHEN i % 2 = 0 THEN 'auth_user' ELSE 'logs' END, NULL FROM generate_series(1, 500) i`,
		`CREATE TABLE profile (id uuid PRIMARY KEY); INSERT INTO profile SELECT id FROM auth_user`)
	var got []string
	for _, c := range found.Candidates {
		got = append(got, fmt.Sprint(c.Line(), c.Sure))
	}
	want := []string{
		`- {table: public.logs, columns: [item], to: public.auth_user, where: "collection = 'auth_user'"}true`,
		`- {table: public.logs, columns: [item], to: public.auth_user, where: "collection = 'profile'"}true`,
		`- {table: public.logs, columns: [user], to: public.auth_user}true`,
		`- {table: public.logs, columns: [what], to: public.auth_user}true`,
		`- {table: public.logs, columns: [whom], to: public.auth_user}true`,
		`- {table: public.profile, columns: [id], to: public.auth_user}true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
