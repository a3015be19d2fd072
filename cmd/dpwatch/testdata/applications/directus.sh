# Makes directus' schema: "install" or "migrate", and the directory of the packages.
[ "$1" = install ] && exec bash -e testdata/applications/npm.sh "$2" directus@11.3.5
cd "$2"
export DB_CLIENT=pg DB_HOST=$PGHOST DB_PORT=$PGPORT DB_DATABASE=$PGDATABASE DB_USER=$PGUSER DB_PASSWORD=$PGPASSWORD SECRET=x KEY=x ADMIN_EMAIL=admin@example.com ADMIN_PASSWORD=x TELEMETRY=false
node node_modules/directus/cli.js bootstrap
