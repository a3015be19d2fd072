package draft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/draft"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// applications are schemas as applications and frameworks make them, each cut to what decides, and the table of the
// persons; "" = none is sure, and the error has the text.
var applications = []struct{ name, ddl, unit, text string }{
	{"Django", `CREATE TABLE django_content_type (id int PRIMARY KEY, model text); CREATE TABLE auth_permission (id int PRIMARY KEY, ct int REFERENCES django_content_type);
		CREATE TABLE auth_user (id int PRIMARY KEY, password text, last_login timestamptz, username text UNIQUE, first_name text, email text);
		CREATE TABLE auth_user_groups (id int PRIMARY KEY, user_id int REFERENCES auth_user); CREATE TABLE page (id int PRIMARY KEY, ct int REFERENCES django_content_type, owner_id int REFERENCES auth_user);
		CREATE TABLE django_admin_log (id int PRIMARY KEY, ct int REFERENCES django_content_type, user_id int REFERENCES auth_user); CREATE TABLE users_userprofile (id int PRIMARY KEY, user_id int UNIQUE REFERENCES auth_user)`, "public.auth_user", ""},
	{"Django, the user model of an application", `CREATE TABLE weblate_auth_user (id int PRIMARY KEY, username text, full_name text, email text); CREATE TABLE weblate_auth_group (id int PRIMARY KEY);
		CREATE TABLE weblate_auth_user_groups (id int PRIMARY KEY, user_id int REFERENCES weblate_auth_user, group_id int REFERENCES weblate_auth_group); CREATE TABLE lang_language (id int PRIMARY KEY, code text, name text);
		CREATE TABLE trans_translation (id int PRIMARY KEY, language_id int REFERENCES lang_language); CREATE TABLE trans_unit (id int PRIMARY KEY, translation_id int REFERENCES trans_translation);
		CREATE TABLE trans_suggestion (id int PRIMARY KEY, unit_id int REFERENCES trans_unit, user_id int REFERENCES weblate_auth_user)`, "public.weblate_auth_user", ""},
	{"joined words", `CREATE TABLE zerver_realm (id int PRIMARY KEY, name text); CREATE TABLE zerver_client (id int PRIMARY KEY, name text);
		CREATE TABLE zerver_userprofile (id int PRIMARY KEY, password text, email text, full_name text, realm_id int REFERENCES zerver_realm);
		CREATE TABLE zerver_message (id int PRIMARY KEY, realm_id int REFERENCES zerver_realm, sender_id int REFERENCES zerver_userprofile, sending_client_id int NOT NULL REFERENCES zerver_client)`, "public.zerver_userprofile", ""},
	{"customers and staff log in", `CREATE TABLE pretixbase_organizer (id int PRIMARY KEY, name text, slug text); CREATE TABLE pretixbase_event (id int PRIMARY KEY, organizer_id int REFERENCES pretixbase_organizer);
		CREATE TABLE pretixbase_user (id int PRIMARY KEY, email text UNIQUE, password text, fullname text, last_login timestamptz);
		CREATE TABLE pretixbase_customer (id int PRIMARY KEY, email text, password text, phone text, name_cached text, organizer_id int REFERENCES pretixbase_organizer);
		CREATE TABLE pretixbase_order (id int PRIMARY KEY, event_id int REFERENCES pretixbase_event, customer_id int REFERENCES pretixbase_customer); CREATE TABLE pretixbase_orderposition (id int PRIMARY KEY, order_id int REFERENCES pretixbase_order);
		CREATE TABLE pretixbase_logentry (id int PRIMARY KEY, event_id int REFERENCES pretixbase_event, user_id int REFERENCES pretixbase_user)`, "public.pretixbase_customer", "public.pretixbase_user: its name is one for persons"},
	{"customers who may have a login", `CREATE TABLE auth_user (id int PRIMARY KEY, username text, password text, email text, last_login timestamptz);
		CREATE TABLE shop_customer (id int PRIMARY KEY, user_id int REFERENCES auth_user, email text, first_name text, last_name text, phone text); CREATE TABLE shop_order (id int PRIMARY KEY, customer_id int REFERENCES shop_customer)`, "public.shop_customer", ""},
	{"customers who all are users", `CREATE TABLE auth_user (id int PRIMARY KEY, username text, password text, email text, last_login timestamptz);
		CREATE TABLE shop_customer (user_id int PRIMARY KEY REFERENCES auth_user, number int); CREATE TABLE shop_order (id int PRIMARY KEY, customer_id int REFERENCES shop_customer)`, "public.auth_user", "its rows belong to public.auth_user by user_id"},
	{"companies are customers", `CREATE TABLE customers (id int PRIMARY KEY, name text, country text); CREATE TABLE users (id int PRIMARY KEY, email text, password_digest text, customer_id int REFERENCES customers);
		CREATE TABLE events (id int PRIMARY KEY, user_id int REFERENCES users)`, "public.users", ""},
	{"Rails", `CREATE TABLE users (id bigint PRIMARY KEY, email varchar, encrypted_password varchar, last_sign_in_at timestamp); CREATE TABLE roles (id bigint PRIMARY KEY, name varchar);
		CREATE TABLE memberships (id bigint PRIMARY KEY, user_id bigint, group_id bigint); CREATE TABLE members (id bigint PRIMARY KEY, user_id bigint REFERENCES users, invite_email varchar, type varchar);
		CREATE TABLE banned_users (id bigint PRIMARY KEY, user_id bigint); CREATE TABLE schema_migrations (version varchar PRIMARY KEY)`, "public.users", ""},
	{"Laravel", `CREATE TABLE users (id bigint PRIMARY KEY, name varchar, email varchar UNIQUE, email_verified_at timestamp, password varchar); CREATE TABLE password_reset_tokens (email varchar PRIMARY KEY, token varchar);
		CREATE TABLE sessions (id varchar PRIMARY KEY, user_id bigint, ip_address varchar, user_agent text); CREATE TABLE personal_access_tokens (id bigint PRIMARY KEY, tokenable_type varchar, tokenable_id bigint)`, "public.users", ""},
	{"Prisma", `CREATE TABLE "User" (id text PRIMARY KEY, name text, email text UNIQUE, "emailVerified" timestamp); CREATE TABLE "Account" (id text PRIMARY KEY, "userId" text NOT NULL REFERENCES "User", provider text);
		CREATE TABLE "Session" (id text PRIMARY KEY, "sessionToken" text UNIQUE, "userId" text NOT NULL REFERENCES "User"); CREATE TABLE "Post" (id int PRIMARY KEY, "authorId" text REFERENCES "User")`, "public.User", ""},
	{"Hibernate", `CREATE SCHEMA app; CREATE TABLE app."UserAccount" ("userAccountId" bigint PRIMARY KEY, "emailAddress" varchar, "passwordHash" varchar, "firstName" varchar); CREATE TABLE app."UserRole" (id bigint PRIMARY KEY);
		CREATE TABLE app."Purchase" (id bigint PRIMARY KEY, "userAccountId" bigint)`, "app.UserAccount", ""},
	{"JHipster", `CREATE TABLE jhi_user (id bigint PRIMARY KEY, login varchar, password_hash varchar, email varchar); CREATE TABLE jhi_authority (name varchar PRIMARY KEY);
		CREATE TABLE jhi_user_authority (user_id bigint REFERENCES jhi_user, authority_name varchar REFERENCES jhi_authority, PRIMARY KEY (user_id, authority_name))`, "public.jhi_user", ""},
	{"Keycloak", `CREATE TABLE realm (id varchar PRIMARY KEY, name varchar, login_theme varchar); CREATE TABLE client (id varchar PRIMARY KEY, secret varchar, base_url varchar, realm_id varchar REFERENCES realm);
		CREATE TABLE client_scope (id varchar PRIMARY KEY, realm_id varchar); CREATE TABLE client_attributes (client_id varchar REFERENCES client, name varchar); CREATE TABLE redirect_uris (client_id varchar REFERENCES client);
		CREATE TABLE user_entity (id varchar PRIMARY KEY, email varchar, first_name varchar, last_name varchar, username varchar, realm_id varchar); CREATE TABLE user_attribute (id varchar PRIMARY KEY, user_id varchar REFERENCES user_entity)`, "public.user_entity", ""},
	{"Discourse", `CREATE TABLE users (id int PRIMARY KEY, username varchar, name varchar, password_hash varchar, last_seen_at timestamp, ip_address inet); CREATE TABLE user_emails (id int PRIMARY KEY, user_id int, email varchar);
		CREATE TABLE group_users (id int PRIMARY KEY, group_id int, user_id int); CREATE TABLE groups (id int PRIMARY KEY, name varchar); CREATE TABLE posts (id int PRIMARY KEY, user_id int, topic_id int)`, "public.users", ""},
	{"Mattermost", `CREATE TABLE users (id varchar PRIMARY KEY, username varchar, password varchar, email varchar, firstname varchar, lastname varchar); CREATE TABLE channelmembers (channelid varchar, userid varchar, PRIMARY KEY (channelid, userid));
		CREATE TABLE posts (id varchar PRIMARY KEY, userid varchar)`, "public.users", ""},
	{"Mastodon", `CREATE TABLE accounts (id bigint PRIMARY KEY, username varchar, domain varchar, display_name varchar); CREATE TABLE users (id bigint PRIMARY KEY, account_id bigint NOT NULL REFERENCES accounts, email varchar, encrypted_password varchar);
		CREATE TABLE statuses (id bigint PRIMARY KEY, account_id bigint REFERENCES accounts); CREATE TABLE favourites (id bigint PRIMARY KEY, status_id bigint REFERENCES statuses, account_id bigint REFERENCES accounts)`, "public.accounts", ""},
	{"tenants are accounts", `CREATE TABLE accounts (id int PRIMARY KEY, name text, email text, phone text, plan text); CREATE TABLE users (id int PRIMARY KEY, account_id int NOT NULL REFERENCES accounts, email text, password text, name text);
		CREATE TABLE projects (id int PRIMARY KEY, account_id int REFERENCES accounts); CREATE TABLE tasks (id int PRIMARY KEY, project_id int REFERENCES projects, user_id int REFERENCES users)`, "public.users", ""},
	{"Odoo", `CREATE TABLE res_company (id int PRIMARY KEY, name text, email text, phone text); CREATE TABLE res_partner (id int PRIMARY KEY, name text, email text, phone text, mobile text, street text, company_id int REFERENCES res_company);
		CREATE TABLE res_users (id int PRIMARY KEY, login text, password text, partner_id int NOT NULL REFERENCES res_partner, company_id int REFERENCES res_company); CREATE TABLE sale_order (id int PRIMARY KEY, partner_id int REFERENCES res_partner, create_uid int REFERENCES res_users, write_uid int REFERENCES res_users)`, "public.res_partner", ""},
	{"Magento", `CREATE TABLE customer_group (id int PRIMARY KEY, code text); CREATE TABLE customer_entity (entity_id int PRIMARY KEY, email text, group_id int REFERENCES customer_group, firstname text, lastname text, dob date);
		CREATE TABLE admin_user (user_id int PRIMARY KEY, firstname text, lastname text, email text, username text, password text); CREATE TABLE sales_order (entity_id int PRIMARY KEY, customer_id int REFERENCES customer_entity)`, "public.customer_entity", ""},
	{"WordPress", `CREATE TABLE wp_users ("ID" bigint PRIMARY KEY, user_login varchar, user_pass varchar, user_email varchar); CREATE TABLE wp_usermeta (umeta_id bigint PRIMARY KEY, user_id bigint); CREATE TABLE wp_terms (term_id bigint PRIMARY KEY, name varchar);
		CREATE TABLE wp_comments (comment_id bigint PRIMARY KEY, comment_author_email varchar, "comment_author_IP" varchar, user_id bigint)`, "public.wp_users", ""},
	{"Medusa", `CREATE TABLE customer (id text PRIMARY KEY, email text, first_name text, phone text); CREATE TABLE "user" (id text PRIMARY KEY, email text, first_name text, last_name text); CREATE TABLE invite (id text PRIMARY KEY, email text);
		CREATE TABLE customer_address (id text PRIMARY KEY, customer_id text REFERENCES customer, first_name text, address_1 text, phone text); CREATE TABLE "order" (id text PRIMARY KEY, customer_id text, email text); CREATE TABLE region (id text PRIMARY KEY, name text)`, "public.customer", ""},
	{"MusicBrainz", `CREATE TABLE artist_type (id int PRIMARY KEY, name text); CREATE TABLE artist (id int PRIMARY KEY, name text, type int REFERENCES artist_type); CREATE TABLE release (id int PRIMARY KEY, artist int REFERENCES artist); CREATE TABLE track (id int PRIMARY KEY, release int REFERENCES release);
		CREATE TABLE language (id int PRIMARY KEY, name text); CREATE TABLE editor (id int PRIMARY KEY, name text, email text, password text, birth_date date, last_login_date timestamptz); CREATE TABLE edit (id int PRIMARY KEY, editor int REFERENCES editor, language int REFERENCES language)`, "public.editor", ""},
	{"Pagila", `CREATE TABLE country (id int PRIMARY KEY); CREATE TABLE city (id int PRIMARY KEY, country_id int REFERENCES country); CREATE TABLE address (address_id int PRIMARY KEY, address text, phone text, city_id int REFERENCES city);
		CREATE TABLE store (store_id int PRIMARY KEY, address_id int REFERENCES address); CREATE TABLE staff (staff_id int PRIMARY KEY, first_name text, last_name text, email text, username text, password text, address_id int REFERENCES address, store_id int REFERENCES store);
		CREATE TABLE customer (customer_id int PRIMARY KEY, first_name text, last_name text, email text, store_id int REFERENCES store, address_id int REFERENCES address); CREATE TABLE actor (actor_id int PRIMARY KEY, first_name text, last_name text);
		CREATE TABLE rental (rental_id int PRIMARY KEY, customer_id int REFERENCES customer, staff_id int REFERENCES staff); CREATE TABLE payment (payment_id int PRIMARY KEY, rental_id int REFERENCES rental, staff_id int REFERENCES staff)`, "public.customer", ""},
	{"Chinook", `CREATE TABLE "Employee" ("EmployeeId" int PRIMARY KEY, "LastName" text, "FirstName" text, "BirthDate" date, "Email" text, "ReportsTo" int REFERENCES "Employee");
		CREATE TABLE "Customer" ("CustomerId" int PRIMARY KEY, "FirstName" text, "LastName" text, "Email" text, "SupportRepId" int NOT NULL REFERENCES "Employee"); CREATE TABLE "Invoice" ("InvoiceId" int PRIMARY KEY, "CustomerId" int REFERENCES "Customer")`, "public.Customer", ""},
	{"AdventureWorks", `CREATE SCHEMA person; CREATE SCHEMA sales; CREATE SCHEMA hr; CREATE TABLE person.businessentity (businessentityid int PRIMARY KEY); CREATE TABLE person.person (businessentityid int PRIMARY KEY REFERENCES person.businessentity, persontype text, firstname text, lastname text);
		CREATE TABLE person.emailaddress (businessentityid int REFERENCES person.person, id int, emailaddress text, PRIMARY KEY (businessentityid, id)); CREATE TABLE hr.employee (businessentityid int PRIMARY KEY REFERENCES person.person, loginid text, birthdate date, nationalidnumber text);
		CREATE TABLE sales.customer (customerid int PRIMARY KEY, personid int REFERENCES person.person); CREATE TABLE sales.orders (id int PRIMARY KEY, customerid int REFERENCES sales.customer)`, "person.person", ""},
	{"OMOP", `CREATE SCHEMA cdm; CREATE TABLE cdm.concept (concept_id int PRIMARY KEY, concept_name text); CREATE TABLE cdm.provider (provider_id int PRIMARY KEY, provider_name text, year_of_birth int); CREATE TABLE cdm.person (person_id int PRIMARY KEY, gender_concept_id int REFERENCES cdm.concept, year_of_birth int, provider_id int REFERENCES cdm.provider);
		CREATE TABLE cdm.visit_occurrence (id int PRIMARY KEY, person_id int REFERENCES cdm.person, visit_concept_id int REFERENCES cdm.concept); CREATE TABLE cdm.observation (id int PRIMARY KEY, person_id int REFERENCES cdm.person, concept_id int REFERENCES cdm.concept)`, "cdm.person", ""},
	{"a hospital", `CREATE TABLE staff (id int PRIMARY KEY, first_name text, last_name text, email text, phone text, birth_date date, password text); CREATE TABLE wards (id int PRIMARY KEY, name text); CREATE TABLE patients (id int PRIMARY KEY, name text, birth_date date, attending_doctor_id int NOT NULL REFERENCES staff);
		CREATE TABLE encounters (id int PRIMARY KEY, patient_id int REFERENCES patients, staff_id int REFERENCES staff, ward_id int REFERENCES wards); CREATE TABLE shifts (id int PRIMARY KEY, staff_id int REFERENCES staff)`, "public.patients", "public.staff"},
	{"persons who are patients or staff", `CREATE TABLE person (person_id int PRIMARY KEY, gender text, birthdate date); CREATE TABLE patient (patient_id int PRIMARY KEY REFERENCES person); CREATE TABLE users (user_id int PRIMARY KEY, username text, password text, person_id int NOT NULL REFERENCES person);
		CREATE TABLE encounter (id int PRIMARY KEY, patient_id int REFERENCES patient, creator int REFERENCES users)`, "public.person", ""},
	{"a bank", `CREATE TABLE clients (id int PRIMARY KEY, full_name text, date_of_birth date, tax_country text); CREATE TABLE accounts (id int PRIMARY KEY, client_id int REFERENCES clients, iban text, balance numeric); CREATE TABLE transfers (id int PRIMARY KEY, from_account int REFERENCES accounts, to_account int REFERENCES accounts)`, "public.clients", ""},
	{"a ledger", `CREATE TABLE accounts (id int PRIMARY KEY, code text, name text, type text); CREATE TABLE entries (id int PRIMARY KEY, account_id int REFERENCES accounts, amount numeric)`, "", "no table looks like that of the privacy unit"},
	{"tickets with passengers", `CREATE TABLE bookings (book_ref text PRIMARY KEY, book_date date); CREATE TABLE tickets (ticket_no text PRIMARY KEY, book_ref text REFERENCES bookings, passenger_id text, passenger_name text, contact_data jsonb); CREATE TABLE flights (id int PRIMARY KEY); CREATE TABLE seats (id int PRIMARY KEY, flight int REFERENCES flights)`, "", "Look at public.tickets (passenger_id, passenger_name)"},
	{"orders with addresses", `CREATE TABLE category (id int PRIMARY KEY, name text); CREATE TABLE product (id int PRIMARY KEY, category_id int REFERENCES category); CREATE TABLE orders (id int PRIMARY KEY, email text, first_name text, last_name text, phone text); CREATE TABLE order_items (id int PRIMARY KEY, order_id int REFERENCES orders, product_id int REFERENCES product)`, "", "Look at public.orders (email, phone, first_name, last_name)"},
	{"lookups alone", `CREATE TABLE role (id int PRIMARY KEY, name text); CREATE TABLE language (id int PRIMARY KEY, code text); CREATE TABLE tenant (id int PRIMARY KEY, name text, email text UNIQUE, password text); CREATE TABLE session (id int PRIMARY KEY, ip inet, tenant_id int REFERENCES tenant, role_id int REFERENCES role, language_id int REFERENCES language);
		CREATE TABLE user_type (id int PRIMARY KEY, name text); CREATE TABLE item (id int PRIMARY KEY, type int REFERENCES user_type, tenant int REFERENCES tenant)`, "", "no table looks like that of the privacy unit"},
	{"columns alone", `CREATE TABLE t17 (nr int PRIMARY KEY, email text UNIQUE, password text, last_login timestamptz, first_name text); CREATE TABLE t18 (id int PRIMARY KEY, nr int REFERENCES t17); CREATE TABLE kind (id int PRIMARY KEY); CREATE TABLE t19 (id int PRIMARY KEY, kind int REFERENCES kind, t18 int REFERENCES t18)`, "public.t17", ""},
	{"two alike", `CREATE TABLE patients (id int PRIMARY KEY, birth_date date); CREATE TABLE donors (id int PRIMARY KEY, birth_date date); CREATE TABLE visits (id int PRIMARY KEY, patient_id int REFERENCES patients); CREATE TABLE gifts (id int PRIMARY KEY, donor_id int REFERENCES donors)`, "", "two tables have equal evidence for persons: public.donors"},
	{"German", `CREATE TABLE mandant (id int PRIMARY KEY, name text); CREATE TABLE kunde (id int PRIMARY KEY, vorname text, nachname text, geburtsdatum date, mandant_id int REFERENCES mandant); CREATE TABLE mitarbeiter (id int PRIMARY KEY, vorname text, nachname text, passwort text);
		CREATE TABLE auftrag (id int PRIMARY KEY, kunde_id int REFERENCES kunde, mitarbeiter_id int REFERENCES mitarbeiter)`, "public.kunde", ""},
	{"French", `CREATE TABLE utilisateurs (id int PRIMARY KEY, courriel text, mot_de_passe text, prénom text); CREATE TABLE langues (id int PRIMARY KEY, nom text); CREATE TABLE articles (id int PRIMARY KEY, utilisateur_id int REFERENCES utilisateurs, langue_id int REFERENCES langues); CREATE TABLE pages (id int PRIMARY KEY, langue_id int REFERENCES langues)`, "public.utilisateurs", ""},
	{"Spanish", `CREATE TABLE usuarios (id int PRIMARY KEY, correo text, contraseña text); CREATE TABLE tipos (id int PRIMARY KEY, nombre text); CREATE TABLE pedidos (id int PRIMARY KEY, usuario_id int REFERENCES usuarios, tipo_id int REFERENCES tipos)`, "public.usuarios", ""},
	{"upper case and affixes", `CREATE TABLE "TBL_CUSTOMER_MASTER" ("CUST_ID" int PRIMARY KEY, "CUST_EMAIL" text, "CUST_MOBILE" text); CREATE TABLE "TBL_SALES" ("ID" int PRIMARY KEY, "CUST_ID" int)`, "public.TBL_CUSTOMER_MASTER", ""},
	{"a unique column", `CREATE TABLE members (no int NOT NULL UNIQUE, name text, email text); CREATE TABLE loans (id int PRIMARY KEY, member_no int REFERENCES members (no))`, "public.members", ""},
	{"a name alone", `CREATE TABLE kinds (id int PRIMARY KEY); CREATE TABLE subscribers (id int PRIMARY KEY); CREATE TABLE calls (id int PRIMARY KEY, kind int REFERENCES kinds, subscriber_id int REFERENCES subscribers); CREATE TABLE tariffs (id int PRIMARY KEY, kind int REFERENCES kinds)`, "public.subscribers", ""},
	{"TPC-H", `CREATE TABLE nation (n_nationkey int PRIMARY KEY); CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name text, c_address text, c_phone text, c_nationkey int REFERENCES nation); CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name text, s_phone text, s_nationkey int REFERENCES nation);
		CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int REFERENCES customer); CREATE TABLE lineitem (l_orderkey int REFERENCES orders, l_suppkey int REFERENCES supplier)`, "public.customer", ""},
	{"identities", `CREATE TABLE auth_provider (id int PRIMARY KEY, name text); CREATE TABLE identities (id uuid PRIMARY KEY, traits_email text, username text); CREATE TABLE sessions (id uuid PRIMARY KEY, identity_id uuid REFERENCES identities, provider int REFERENCES auth_provider)`, "public.identities", ""},
	{"publishing", `CREATE TABLE users (id int PRIMARY KEY, email text, password text, last_seen timestamptz); CREATE TABLE members (id int PRIMARY KEY, email text, name text); CREATE TABLE posts (id int PRIMARY KEY, created_by int REFERENCES users);
		CREATE TABLE posts_users (id int PRIMARY KEY, post_id int REFERENCES posts, user_id int REFERENCES users); CREATE TABLE subscriptions (id int PRIMARY KEY, member_id int REFERENCES members); CREATE TABLE payments (id int PRIMARY KEY, member_id int REFERENCES members)`, "public.members", ""},
	{"satellites", `CREATE TABLE hub_customer (customer_hk bytea PRIMARY KEY, customer_no text); CREATE TABLE sat_customer (customer_hk bytea REFERENCES hub_customer, load_date date, name text, email text, phone text, PRIMARY KEY (customer_hk, load_date));
		CREATE TABLE link_order (order_hk bytea PRIMARY KEY, customer_hk bytea REFERENCES hub_customer)`, "public.hub_customer", ""},
	{"WideWorldImporters", `CREATE SCHEMA application; CREATE SCHEMA sales; CREATE TABLE application.people (person_id int PRIMARY KEY, full_name text, logon_name text, hashed_password bytea, phone_number text, email_address text);
		CREATE TABLE sales.customers (customer_id int PRIMARY KEY, customer_name text, primary_contact_person_id int NOT NULL REFERENCES application.people, phone_number text); CREATE TABLE sales.orders (order_id int PRIMARY KEY, customer_id int REFERENCES sales.customers)`, "application.people", ""},
	{"shops with guests", `CREATE TABLE sylius_customer (id int PRIMARY KEY, email text, first_name text); CREATE TABLE sylius_shop_user (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES sylius_customer, username text, password text); CREATE TABLE sylius_admin_user (id int PRIMARY KEY, email text, username text, password text, first_name text);
		CREATE TABLE sylius_order (id int PRIMARY KEY, customer_id int REFERENCES sylius_customer)`, "public.sylius_customer", ""},
	{"a dashboard", `CREATE TABLE org (id int PRIMARY KEY, name text); CREATE TABLE "user" (id int PRIMARY KEY, login text, email text, password text); CREATE TABLE org_user (id int PRIMARY KEY, org_id int, user_id int); CREATE TABLE temp_user (id int PRIMARY KEY, org_id int, email text, role text, invited_by_user_id int);
		CREATE TABLE data_source (id int PRIMARY KEY, org_id int, "user" text, password text); CREATE TABLE star (id int PRIMARY KEY, user_id int)`, "public.user", ""},
	{"an old copy", `CREATE TABLE users (id int PRIMARY KEY, email text); CREATE TABLE users_2023 (id int PRIMARY KEY, email text)`, "public.users", ""},
	{"authors and books", `CREATE TABLE authors (id int PRIMARY KEY, name text); CREATE TABLE books (id int PRIMARY KEY, author_id int REFERENCES authors); CREATE TABLE personas (id int PRIMARY KEY, name text)`, "", "no table looks like that of the privacy unit"},
	{"many tables of users", `CREATE TABLE users (id int PRIMARY KEY, email text, password text); CREATE TABLE customers (id int PRIMARY KEY, email text, password text); CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers); CREATE TABLE a (id int PRIMARY KEY, user_id int REFERENCES users);
		CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a); CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES a); CREATE TABLE d (id int PRIMARY KEY, a int REFERENCES a); CREATE TABLE e (id int PRIMARY KEY, a int REFERENCES a)`, "public.customers", ""},
	{"no key", `CREATE TABLE users (id int, email text); CREATE TABLE logins (user_id int)`, "", "Look at public.users (it has no primary key"},
	{"a service of identities", `CREATE TABLE identities (id uuid PRIMARY KEY, traits jsonb, schema_id text); CREATE TABLE sessions (id uuid PRIMARY KEY, identity_id uuid REFERENCES identities); CREATE TABLE courier_messages (id uuid PRIMARY KEY, recipient text)`, "public.identities", ""},
	{"German compounds", `CREATE TABLE kd_privatkunden (nr int PRIMARY KEY, anrede text, nachname text, strasse text, plz text); CREATE TABLE bankkonten (nr int PRIMARY KEY, kunde int REFERENCES kd_privatkunden); CREATE TABLE buchungen (nr int PRIMARY KEY, konto int REFERENCES bankkonten)`, "public.kd_privatkunden", ""},
	{"Supabase", `CREATE SCHEMA auth; CREATE TABLE auth.users (id uuid PRIMARY KEY, email varchar, encrypted_password varchar, phone text); CREATE TABLE auth.identities (id uuid PRIMARY KEY, user_id uuid REFERENCES auth.users, email text); CREATE TABLE profiles (id uuid PRIMARY KEY REFERENCES auth.users, username text, full_name text);
		CREATE TABLE todos (id int PRIMARY KEY, user_id uuid REFERENCES profiles)`, "auth.users", ""},
}

// TestPerson: the table of the persons is found by names and columns, never by references alone; what is not sure is
// no guess, and the error says where to look.
func TestPerson(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	for _, tc := range applications {
		pgtest.Exec(t, dsn, `DO $$ DECLARE s name; BEGIN FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema' LOOP
			EXECUTE format('DROP SCHEMA %I CASCADE', s); END LOOP; END $$; CREATE SCHEMA public`, tc.ddl)
		file, _, err := draft.Make(t.Context(), dsn, draft.Options{})
		switch {
		case err != nil && (tc.unit != "" || !strings.Contains(err.Error(), tc.text)):
			t.Errorf("%s: %v", tc.name, err)
		case err == nil && (tc.unit == "" || !strings.Contains(file, "    table: "+tc.unit+"\n") || !strings.Contains(file, tc.text)):
			_, file, _ = strings.Cut(file, "  unit:")
			file, _, _ = strings.Cut(file, "  protected:")
			t.Errorf("%s: want %q %q:%s", tc.name, tc.unit, tc.text, file)
		}
	}
}

// TestProposals: a column that names a person without a key is a line of paths, one that may is such a line in a
// comment, and so is the only path of a table if it is an act; personal tables come before the others, and none is
// proposed as public.
func TestProposals(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `CREATE TABLE country (id int PRIMARY KEY, name text); CREATE TABLE address (id int PRIMARY KEY, name text, street text, country_id int REFERENCES country);
		CREATE TABLE shop (id int PRIMARY KEY, label text, phone bigint); CREATE TABLE device (id int PRIMARY KEY, client_ip inet); CREATE TABLE contact_point (id int PRIMARY KEY, "supportEmail" text, verified boolean);
		CREATE TABLE person (id uuid PRIMARY KEY, email text UNIQUE, locale int); INSERT INTO person SELECT md5('p' || i)::uuid, 'p' || i || '@example.org' FROM generate_series(1, 50) i;
		CREATE TABLE "order" (id int PRIMARY KEY, person_id uuid REFERENCES person, address int REFERENCES address, shop int REFERENCES shop, country int REFERENCES country, device int REFERENCES device, point int REFERENCES contact_point, guest_email text);
		INSERT INTO "order" (id, person_id, guest_email) SELECT i, md5('p' || i)::uuid, 'p' || i || '@example.org' FROM generate_series(1, 40) i;
		CREATE TABLE refund (id int PRIMARY KEY, order_id int, note text); INSERT INTO refund SELECT i, i FROM generate_series(1, 30) i;
		CREATE TABLE audit (id int PRIMARY KEY, order_id int REFERENCES "order", record_type text, record_id text, approved_by uuid); INSERT INTO audit SELECT i, i, 'Person', md5('p' || i)::uuid::text, md5('p' || i)::uuid FROM generate_series(1, 30) i;
		CREATE TABLE document (id int PRIMARY KEY, uploaded_by uuid REFERENCES person); INSERT INTO document SELECT i, CASE WHEN i < 7 THEN md5('p' || i)::uuid END FROM generate_series(1, 10) i;
		CREATE TABLE newsletter (id int PRIMARY KEY, mail text); CREATE TABLE secret (id int PRIMARY KEY, data bytea); INSERT INTO secret VALUES (1, 'x'); CREATE TABLE setting (id int PRIMARY KEY, value text);
		CREATE TABLE courier_staff (id int PRIMARY KEY, name text); ALTER TABLE "order" ADD courier int REFERENCES courier_staff; CREATE SCHEMA dpwatch; CREATE TABLE dpwatch.neighbour_set (d0 text, d1 text[]); INSERT INTO dpwatch.neighbour_set VALUES ('d0', '{}');
		CREATE SCHEMA d0; CREATE TABLE d0.person AS TABLE person; ALTER TABLE d0.person ADD PRIMARY KEY (id); ANALYZE`)
	c, file, _ := parsed(t, dsn, "")
	if want := []string{"public.audit", "public.order", "public.person", "public.refund"}; !slices.Equal(tables(c), want) {
		t.Errorf("protected: %q, want %q", tables(c), want)
	}
	before := -1
	for _, want := range []string{
		"  paths:", "\n    - {table: public.audit, columns: [approved_by], to: public.person, act: true}",
		"\n    - {table: public.audit, columns: [record_id], to: public.person, where: \"record_type = 'Person'\"}",
		"\n    - {table: public.order, columns: [person_id], to: public.person}", "\n    - {table: public.order, columns: [guest_email], to: public.person, on: [email]}",
		"\n    - {table: public.refund, columns: [order_id], to: public.order, on: [id]}",
		"\n  #   - {table: public.document, columns: [uploaded_by], to: public.person}  # a foreign key; of an act: no row belongs to who did it; it names somebody in 6 of 10 rows",
		"\n  #   - {table: public.address, columns: [COLUMN], to: public.person}  # street", "public.contact_point, columns: [COLUMN], to: public.person}  # supportEmail", "public.courier_staff, columns: [COLUMN], to: public.person}  # name", "public.device, columns: [COLUMN], to: public.person}  # client_ip",
		"public.newsletter, columns: [COLUMN], to: public.person}  # mail", "public.shop, columns: [COLUMN], to: public.person}  # phone",
		"\n  # public: [public.country]\n", "not audited (2 tables): public.secret, public.setting\n", "Not searched for persons: bytea, perhaps encrypted (1): public.secret.data\n",
	} {
		at := strings.Index(file, want)
		if at <= before {
			t.Errorf("%q is at %d, after %d, in\n%s", want, at, before, file)
		}
		before = at
	}
	for _, value := range []string{"@example", "md5"} {
		if strings.Contains(file, value) {
			t.Errorf("a value of a row: %q", value)
		}
	}
	if _, file, _ = parsed(t, dsn, "public.shop"); !strings.Contains(file, "# public: [public.country]\n") || !strings.Contains(file, "public.person, columns: [COLUMN], to: public.shop}  # email") {
		t.Errorf("the persons' table is proposed as public:\n%s", file)
	}
}
