-- A hospital: staff treat patients; who treats, writes or signs does not own the patient's record.
CREATE TYPE severity AS ENUM ('low', 'medium', 'high');
CREATE TABLE wards (id serial PRIMARY KEY, name text NOT NULL, floor int NOT NULL);
CREATE TABLE diagnoses (code varchar(8) PRIMARY KEY, title text NOT NULL);
CREATE TABLE staff (id uuid PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, email text NOT NULL UNIQUE, username text NOT NULL UNIQUE, password text NOT NULL, last_login timestamptz, ward_id int REFERENCES wards);
CREATE TABLE patients (id uuid PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, birth_date date NOT NULL, email text UNIQUE, phone text, registered_by uuid NOT NULL REFERENCES staff, family_doctor_id uuid REFERENCES staff);
CREATE TABLE insurance (patient_id uuid PRIMARY KEY REFERENCES patients, company text NOT NULL, policy int NOT NULL);
CREATE TABLE stays (id serial PRIMARY KEY, patient_id uuid NOT NULL REFERENCES patients, ward_id int NOT NULL REFERENCES wards, admitted_by uuid NOT NULL REFERENCES staff, days int NOT NULL);
CREATE TABLE findings (id serial PRIMARY KEY, stay_id int NOT NULL REFERENCES stays, diagnosis varchar(8) NOT NULL REFERENCES diagnoses, severity severity NOT NULL, signed_by uuid REFERENCES staff);
CREATE TABLE prescriptions (id serial PRIMARY KEY, finding_id int REFERENCES findings, patient_id uuid NOT NULL REFERENCES patients, drug text NOT NULL, dose numeric NOT NULL, created_by uuid NOT NULL REFERENCES staff);
CREATE TABLE shifts (id serial PRIMARY KEY, staff_id uuid NOT NULL REFERENCES staff, ward_id int REFERENCES wards, hours int NOT NULL);
CREATE TABLE appointments (id serial PRIMARY KEY, patient_id uuid REFERENCES patients, staff_id uuid NOT NULL REFERENCES staff, day date NOT NULL, minutes smallint NOT NULL, cancelled_by uuid);
CREATE TABLE messages (id serial PRIMARY KEY, record_type text NOT NULL, record_id uuid NOT NULL, body text, priority int NOT NULL);
CREATE TABLE emergency_contacts (id serial PRIMARY KEY, patient uuid NOT NULL, name text NOT NULL, phone text);
