# Makes medusa's schema: "install" or "migrate", and the directory of the packages.
[ "$1" = install ] && exec bash -e testdata/applications/npm.sh "$2" @medusajs/medusa@2.21.2 @medusajs/cli@2.21.2 @medusajs/framework@2.21.2
cd "$2"
cat >medusa-config.js <<'END'
module.exports = require("@medusajs/framework/utils").defineConfig({
  projectConfig: { databaseUrl: process.env.DATABASE_URL, databaseDriverOptions: { connection: { ssl: false } }, http: { storeCors: "x", adminCors: "x", authCors: "x", jwtSecret: "x", cookieSecret: "x" } },
  admin: { disable: true },
})
END
MEDUSA_DISABLE_TELEMETRY=1 npx --no-install medusa db:migrate --skip-scripts
