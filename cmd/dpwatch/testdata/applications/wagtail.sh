# Makes wagtail's schema: "install" or "migrate", and the directory of the packages.
[ "$1" = install ] && exec bash -e testdata/applications/venv.sh "$2" wagtail==8.0.1 'psycopg[binary]==3.3.9'
PYTHONPATH=testdata/applications DJANGO_SETTINGS_MODULE=wagtail_settings "$2/bin/python" -W ignore -m django migrate --skip-checks -v0
