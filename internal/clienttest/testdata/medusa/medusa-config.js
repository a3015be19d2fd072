module.exports = require("@medusajs/framework/utils").defineConfig({
  projectConfig: { databaseUrl: process.env.DATABASE_URL, databaseDriverOptions: { connection: { ssl: false } }, http: { storeCors: "x", adminCors: "x", authCors: "x", jwtSecret: "x", cookieSecret: "x" } },
  admin: { disable: true },
})
