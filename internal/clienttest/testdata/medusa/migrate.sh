MEDUSA_DISABLE_TELEMETRY=1 npx --no-install medusa db:migrate --skip-scripts
